#pragma once
// Steps that a GPU makes by itself, many before the host looks: batches, loss, gradients, the decision whether a step
// is made, update and moving average. One CUDA graph holds them all.

#include <memory>
#include <optional>
#include <vector>

#include "stipple/learn/loop/run_state.h"
#include "stipple/learn/loop/step_graph.h"
#include "stipple/learn/objective.h"
#include "stipple/learn/optimizer.h"
#include "stipple/learn/recipe.h"

namespace stipple::learn {

/// What a step came to.
struct StepRecord {
    double loss = 0, gradient = 0;  // gradient: the norm, without the loss scale
    double scale = 1;               // of the loss
    bool is_made = false;
};

class DeviceSteps {
public:
    /// All outlive it. The objective has device batches of `batch` items; the caller sets its order of each epoch, or
    /// gives it batches to stage.
    DeviceSteps(const Recipe& recipe, Objective& objective, Module& module, Optimizer& optimizer, Average& average,
                int64_t batch, torch::Device device);

    /// Before the first of some steps of an epoch: rates of all of them, from step counters.step on. how: of them all.
    void begin(const Counters& counters, int64_t epoch, int64_t first_item, const std::vector<double>& rates,
               const RunOptions& how);

    /// Queues the next `count`, fewer where a signal comes; calls advance() after each. For an objective that stages
    /// batches they are the loader's next ones, and each waits for the step before it.
    void launch(int64_t count, data::BatchLoader& loader, const std::function<void()>& advance);

    /// Until the steps that were launched are done; tells the counters, optimizer and average of them, but for
    /// counters.skipped: who counts those must say why.
    std::vector<StepRecord> finish(Counters& counters);

    static constexpr int64_t kMostSteps = 4096;  // between begin() and finish()

private:
    void step();

    const Recipe& recipe_;
    Objective& objective_;
    Module& module_;
    Optimizer& optimizer_;
    Average& average_;
    RunOptions how_;
    std::vector<torch::Tensor> statistics_, statistics_before_;
    StepClock clock_;
    torch::Tensor advance_;  // of the clock, by a step
    torch::Tensor clock_numbers_, state_, control_, log_, rates_, first_step_, sums_;
    StepGraph graph_;
};

}  // namespace stipple::learn
