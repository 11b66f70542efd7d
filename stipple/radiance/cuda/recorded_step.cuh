#pragma once
// Included by .cu files only.

#include "stipple/core/cuda/check.h"

namespace stipple::radiance::cuda {

/// A step that has been recorded once, to be repeated.
class RecordedStep {
public:
    RecordedStep() = default;
    ~RecordedStep() { reset(); }
    RecordedStep(const RecordedStep&) = delete;
    RecordedStep& operator=(const RecordedStep&) = delete;

    void reset() {
        if (graph_) cudaGraphExecDestroy(graph_);
        graph_ = nullptr;
    }
    template <class Launch>
    void run(cudaStream_t stream, const Launch& launch) {
        if (!graph_) {
            STIPPLE_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            cudaGraph_t recorded = nullptr;
            try {
                launch();
            } catch (...) {
                cudaStreamEndCapture(stream, &recorded);
                if (recorded) cudaGraphDestroy(recorded);
                throw;
            }
            STIPPLE_CHECK_CUDA(cudaStreamEndCapture(stream, &recorded));
            const cudaError_t status = cudaGraphInstantiate(&graph_, recorded, 0);
            cudaGraphDestroy(recorded);
            STIPPLE_CHECK_CUDA(status);
        }
        STIPPLE_CHECK_CUDA(cudaGraphLaunch(graph_, stream));
    }

private:
    cudaGraphExec_t graph_ = nullptr;
};

}  // namespace stipple::radiance::cuda
