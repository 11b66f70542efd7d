#include <algorithm>

#include "stipple/core/cuda/check.h"
#include "stipple/engine/cuda/graphs.cuh"

namespace stipple::engine::cuda {
namespace {

cudaGraphExec_t record(const std::function<void(cudaStream_t)>& queue, cudaStream_t capture) {
    cudaGraph_t graph = nullptr;
    // Other threads may allocate meanwhile: their calls are none of this capture's business.
    STIPPLE_CHECK_CUDA(cudaStreamBeginCapture(capture, cudaStreamCaptureModeThreadLocal));
    try {
        queue(capture);
    } catch (...) {
        cudaStreamEndCapture(capture, &graph);
        if (graph != nullptr) cudaGraphDestroy(graph);
        cudaGetLastError();
        throw;
    }
    STIPPLE_CHECK_CUDA(cudaStreamEndCapture(capture, &graph));
    cudaGraphExec_t executable = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    STIPPLE_CHECK_CUDA(status);
    return executable;
}

}  // namespace

GraphCache::GraphCache() {
    STIPPLE_CHECK_CUDA(cudaStreamCreateWithFlags(&capture_, cudaStreamNonBlocking));
}

GraphCache::~GraphCache() {
    for (Entry& entry : entries_)
        if (entry.graph != nullptr) cudaGraphExecDestroy(entry.graph);
    cudaStreamDestroy(capture_);
}

void GraphCache::run(const GraphKey& key, const std::function<void(cudaStream_t)>& queue, cudaStream_t stream) {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
    if (found == entries_.end()) {
        queue(stream);
        if (entries_.size() == kMost) {
            if (entries_.back().graph != nullptr) cudaGraphExecDestroy(entries_.back().graph);
            entries_.pop_back();
        }
        entries_.push_front({key, nullptr});
        return;
    }
    entries_.splice(entries_.begin(), entries_, found);
    if (found->graph == nullptr) found->graph = record(queue, capture_);
    STIPPLE_CHECK_CUDA(cudaGraphLaunch(found->graph, stream));
}

}  // namespace stipple::engine::cuda
