#include "stipple/engine/run/backend.h"

#include "stipple/engine/cpu/context.h"

namespace stipple::engine {
namespace {

class CpuBackend : public Backend {
public:
    CpuBackend(Program program, const Options& options)
        : Backend(std::move(program), options), plan_(cpu::make_plan(program_, options_)) {}

    std::unique_ptr<ContextState> new_context() const override {
        return std::make_unique<cpu::Context>(program_, plan_, options_);
    }
    int64_t weight_bytes() const override { return plan_.weight_bytes; }
    int64_t context_bytes() const override { return cpu::context_bytes(plan_, options_, threads()); }

    std::vector<std::string> describe() const override {
        std::vector<std::string> lines;
        for (size_t s = 0; s < program_.steps.size(); ++s) {
            const cpu::StepPlan& plan = plan_.steps[s];
            std::string how = "plain loop";
            if (plan.chain) how = plan.chain->describe();
            if (!plan.head.empty()) {
                how = "all clouds at once";
                for (const cpu::HeadLayer& layer : plan.head)
                    how += fmt::format(", {} x {}", layer.slices.size(), layer.slices.front().chain.describe());
            }
            lines.push_back(program_.steps[s].name + ": " + how);
        }
        return lines;
    }

private:
    cpu::Plan plan_;
};

}  // namespace

std::shared_ptr<const Backend> make_cpu_backend(Program program, const Options& options) {
    return std::make_shared<CpuBackend>(std::move(program), options);
}

}  // namespace stipple::engine
