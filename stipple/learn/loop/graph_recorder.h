#pragma once
// StepGraph's seam: what it needs of torch's CUDA headers, which only builds with CUDA have.

#include "stipple/learn/loop/step_graph.h"

namespace stipple::learn {

class StepGraph::Recorder {
public:
    virtual ~Recorder() = default;
    virtual void launch() = 0;
    virtual void run(const std::function<void()>& work) = 0;
    virtual void forget() = 0;
    virtual bool is_recorded() const = 0;
    virtual void wait() = 0;
};

std::unique_ptr<StepGraph::Recorder> make_recorder(torch::Device device, bool can_be_recorded,
                                                   std::function<void()> step);

}  // namespace stipple::learn
