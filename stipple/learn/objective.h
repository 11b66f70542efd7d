#pragma once
// Objective: what a run trains for. The loop knows no task: it asks for batches, a loss and scores.

#include <map>
#include <span>
#include <string>
#include <torch/types.h>
#include <vector>

#include "stipple/data/batch_loader.h"
#include "stipple/learn/module.h"

namespace stipple::learn {

/// Numbers by name: "accuracy", "loss".
using Scores = std::vector<std::pair<std::string, double>>;

struct StepOutput {
    torch::Tensor loss;  // one number, with gradients
    torch::Tensor sums;  // float64 [Objective::sums().size()] on the device: what an epoch adds up
};

/// Where a run is, in the memory of a GPU, so that a step that is repeated finds its items and its draws: int64.
struct StepClock {
    torch::Tensor step;   // [1] of the run
    torch::Tensor epoch;  // [1]
    torch::Tensor first;  // [1] place of the batch's first item in the order of the epoch
};

class Objective {
public:
    virtual ~Objective() = default;

    /// To train on, at least 1.
    virtual int64_t items() const = 0;
    /// The network, with classes and parts of the data, and what its weights should tell: names of classes and so on.
    virtual network::Network network() const = 0;
    virtual std::map<std::string, std::string> metadata() const = 0;

    /// Before the first batch: memory for `buffers` batches of `batch` items, `threads` threads that call make().
    virtual void prepare(int64_t batch, int buffers, int threads, torch::Device device) = 0;
    /// One item of a batch, on a thread of the loader: a function of (epoch, item) alone.
    virtual void make(int64_t epoch, int64_t item, const data::LoaderSlot& slot) = 0;
    virtual StepOutput step(Module& module, const data::LoadedBatch& batch, const RunOptions& options) = 0;

    /// Whether batches are on the GPU that prepare() was given, made there of data that stay there: then a step needs
    /// nothing of the host. They hold what make() makes.
    virtual bool has_device_batches() const { return false; }
    /// Whether these batches are the loader's all the same, and stage() copies each to one place on the GPU.
    virtual bool has_staged_batches() const { return false; }
    /// Queues the copy of a batch of the loader for the step_on_device() that follows.
    virtual void stage(const data::LoadedBatch& batch) { (void)batch; }
    /// The order of the items of an epoch, before its first step_on_device().
    virtual void set_order(std::span<const int64_t> order) { (void)order; }
    /// As step(), of the items that the clock names, or those of the batch that was staged. Waits for nothing.
    virtual StepOutput step_on_device(Module& module, const StepClock& clock, const RunOptions& options) {
        (void)clock;
        (void)options;
        throw Error(ErrorCode::internal, module.network().name + ": no batches on a GPU");
    }

    /// Whether a CUDA graph can hold step_on_device(), where the network's layers let it: it allocates by torch alone
    /// and asks the host for nothing. Else it is queued kernel by kernel.
    virtual bool can_be_recorded() const { return true; }

    /// Names of what step() sums; `scores` makes an epoch's scores of them.
    virtual std::vector<std::string> sums() const = 0;
    virtual Scores scores(std::span<const double> sums) const = 0;

    virtual bool has_validation() const = 0;
    /// Scores of the validation items, the first of which decides which model is the best: larger is better.
    virtual Scores evaluate(Module& module) = 0;

    /// For messages: the names of items.
    virtual std::string describe(std::span<const int64_t> items) const = 0;
};

}  // namespace stipple::learn
