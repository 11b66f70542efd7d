#pragma once
// A small objective: ten shapes of 32 points and a network of a few thousand parameters. A step takes milliseconds.

#include <functional>

#include "stipple/learn/objective.h"
#include "stipple/learn/recipe.h"

namespace stipple::test {

class ToyObjective : public learn::Objective {
public:
    explicit ToyObjective(int64_t items = 160);

    int64_t items() const override { return items_; }
    network::Network network() const override;
    std::map<std::string, std::string> metadata() const override { return {{"stipple.trained", "true"}}; }
    void prepare(int64_t batch, int buffers, int threads, torch::Device device) override;
    void make(int64_t epoch, int64_t item, const data::LoaderSlot& slot) override;
    learn::StepOutput step(learn::Module& module, const data::LoadedBatch& batch,
                           const learn::RunOptions& options) override;
    std::vector<std::string> sums() const override { return {"loss", "right", "rows"}; }
    learn::Scores scores(std::span<const double> sums) const override {
        return {{"loss", sums[0]}, {"accuracy", sums[1] / sums[2]}};
    }
    bool has_validation() const override { return true; }
    learn::Scores evaluate(learn::Module& module) override;
    std::string describe(std::span<const int64_t> items) const override { return std::to_string(items.size()); }

    /// Called before the loss of each step (counted from 0) with the points of the batch, which it may spoil.
    std::function<void(int64_t step, torch::Tensor& points)> before_step;
    int64_t steps_run = 0;
    std::vector<double> losses;

private:
    int64_t items_, batch_ = 0;
    torch::Device device_ = torch::kCPU;
    std::vector<float> points_;  // [items, 32, 3]
    std::vector<int32_t> labels_;
    std::vector<torch::Tensor> point_buffers_, label_buffers_;
};

/// 4 epochs of 10 steps, dropout, momentum schedule, moving average: all that a checkpoint must keep.
learn::Recipe toy_recipe();

}  // namespace stipple::test
