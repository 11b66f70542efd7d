#pragma once
// Backend: what a device brings to run a Program. Two exist: cpu/backend.cpp and cuda/backend.cu.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stipple/engine/engine.h"
#include "stipple/engine/program.h"
#include "stipple/engine/run/step_profile.h"

namespace stipple::engine {

/// Memory of one context and all that changes while it runs.
class ContextState {
public:
    virtual ~ContextState() = default;
    /// batches: by point set. inputs and outputs in the order of the program's bindings; a null view for an output that
    /// is not wanted; indices [points, k] are int32 behind a view of float. Checked.
    virtual void run_sets(std::span<const ops::Batch* const> batches, const std::vector<View<const float, 2>>& inputs,
                          const std::vector<View<float, 2>>& outputs, Stream stream) = 0;
    /// Of a program with one set.
    void run(const ops::Batch& batch, const std::vector<View<const float, 2>>& inputs,
             const std::vector<View<float, 2>>& outputs, Stream stream) {
        const ops::Batch* const one = &batch;
        run_sets({&one, 1}, inputs, outputs, stream);
    }

    std::unique_ptr<StepProfile>
        profile;  // null: nobody wants to know. Spans of whole runs on the CPU come from outside
};

class Backend {
public:
    virtual ~Backend() = default;
    virtual std::unique_ptr<ContextState> new_context() const = 0;
    virtual int64_t weight_bytes() const = 0;
    virtual int64_t context_bytes() const = 0;
    virtual std::vector<std::string> describe() const = 0;  // one line a step
    const Program& program() const { return program_; }
    const Options& options() const { return options_; }
    const std::vector<PointSet>& sets() const { return sets_; }

protected:
    Backend(Program program, Options options)
        : program_(std::move(program)), options_(std::move(options)), sets_(point_sets(program_)) {}
    Program program_;
    Options options_;
    std::vector<PointSet> sets_;
};

/// options.device names the device; layers' precisions are already set in the program.
std::shared_ptr<const Backend> make_cpu_backend(Program program, const Options& options);

namespace cuda {
std::shared_ptr<const Backend> make_backend(Program program, const Options& options);
}

}  // namespace stipple::engine
