#pragma once
// A step that a GPU repeats without the host: a CUDA graph of everything that the step queues.
//
// A step of a PointNet is some hundred kernels, most of which take less time than the host needs to queue them. A graph
// of them is queued as one.

#include <functional>
#include <memory>
#include <torch/types.h>

namespace stipple::learn {

/// What the graph repeats is what the step queued when it was recorded: the same memory, the same numbers of the host.
/// So a step must find in the GPU's memory whatever differs from call to call, must not wait for the GPU, and works on
/// tensors that outlive the graph.
class StepGraph {
public:
    /// A step that cannot be recorded is queued as it is, every time. Throws Error{no_device} in a build without CUDA.
    StepGraph(torch::Device device, bool can_be_recorded, std::function<void()> step);
    ~StepGraph();
    StepGraph(const StepGraph&) = delete;
    StepGraph& operator=(const StepGraph&) = delete;

    /// Queues one step: the first kWarmUp calls as they are, since libraries allocate when they are first used; then
    /// recorded once and repeated from there.
    void launch();

    /// Queues something else between two steps, and waits until it and all before it are done.
    void run(const std::function<void()>& work);

    /// The next step is recorded anew: it has changed.
    void forget();

    bool is_recorded() const;

    /// Until all steps have been made.
    void wait();

    static constexpr int kWarmUp = 3;

    class Recorder;  // the part that sees torch's CUDA headers

private:
    std::unique_ptr<Recorder> recorder_;
};

}  // namespace stipple::learn
