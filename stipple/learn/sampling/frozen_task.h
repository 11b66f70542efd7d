#pragma once
// A network whose weights are given and stay, as the tasks of samplers use it.

#include <memory>

#include "stipple/learn/module.h"
#include "stipple/learn/sampling/shape_tasks.h"
#include "stipple/models/registry.h"

namespace stipple::learn {

class FrozenTask : public ShapeTask {
public:
    /// path: for messages.
    FrozenTask(models::Model model, std::string path) : model_(std::move(model)), path_(std::move(path)) {}

    void prepare(torch::Device device) override;

    /// Throws Error{bad_config} where layers of the network want more neighbours than a cloud of `size` points has.
    void require_points(int64_t size) const;

protected:
    /// In evaluation mode: batch norms use their running statistics, and nothing changes them.
    std::map<std::string, torch::Tensor> run(const std::vector<ops::Batch>& batches,
                                             const std::map<std::string, torch::Tensor>& inputs) const {
        return module_->run(batches, inputs, how(batches));
    }
    /// Few rows are multiplied sooner than the many small products of a fused maximum are launched.
    static RunOptions how(const std::vector<ops::Batch>& batches) {
        constexpr int64_t kFewRows = 8192;
        RunOptions options;
        options.fuses = batches[0].rows() > kFewRows;
        return options;
    }
    const network::Network& network() const { return model_.network; }
    Module& module() const { return *module_; }
    /// Channels of the output `logits`, 0 where it has none of that level.
    int64_t logits_at(network::Level level) const;
    [[noreturn]] void misfit(const std::string& message, const std::string& hint = "") const;

private:
    models::Model model_;
    std::string path_;
    std::unique_ptr<Module> module_;
};

}  // namespace stipple::learn
