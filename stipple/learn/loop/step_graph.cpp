#include "stipple/learn/loop/step_graph.h"

#include "stipple/learn/loop/graph_recorder.h"

#ifndef STIPPLE_WITH_CUDA
#include "stipple/core/device.h"
#include "stipple/core/error.h"
#endif

namespace stipple::learn {

#ifndef STIPPLE_WITH_CUDA
std::unique_ptr<StepGraph::Recorder> make_recorder(torch::Device, bool, std::function<void()>) {
    throw Error(ErrorCode::no_device, "built without CUDA: no graphs of steps");
}
#endif

StepGraph::StepGraph(torch::Device device, bool can_be_recorded, std::function<void()> step)
    : recorder_(make_recorder(device, can_be_recorded, std::move(step))) {}

StepGraph::~StepGraph() = default;

void StepGraph::launch() {
    recorder_->launch();
}

void StepGraph::run(const std::function<void()>& work) {
    recorder_->run(work);
}

void StepGraph::forget() {
    recorder_->forget();
}

bool StepGraph::is_recorded() const {
    return recorder_->is_recorded();
}

void StepGraph::wait() {
    recorder_->wait();
}

}  // namespace stipple::learn
