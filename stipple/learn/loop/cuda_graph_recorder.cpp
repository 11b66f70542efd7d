
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "stipple/learn/loop/graph_recorder.h"

namespace stipple::learn {
namespace {

class CudaRecorder : public StepGraph::Recorder {
public:
    CudaRecorder(torch::Device device, bool can_be_recorded, std::function<void()> step)
        : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())),
          can_be_recorded_(can_be_recorded),
          step_(std::move(step)) {
        // What the tensors hold so far was queued on the stream that was current then.
        c10::cuda::getCurrentCUDAStream(device.index()).synchronize();
    }

    void launch() override {
        const c10::cuda::CUDAStreamGuard on_own_stream(stream_);
        if (!can_be_recorded_ || calls_ < StepGraph::kWarmUp) {
            ++calls_;
            step_();
            return;
        }
        if (!graph_) record();
        graph_->replay();
    }

    void run(const std::function<void()>& work) override {
        {
            const c10::cuda::CUDAStreamGuard on_own_stream(stream_);
            work();
        }
        wait();
    }

    void forget() override {
        if (!graph_) return;
        wait();
        graph_.reset();
    }

    bool is_recorded() const override { return graph_ != nullptr; }
    void wait() override { stream_.synchronize(); }

private:
    void record() {
        wait();
        // What the first calls have left in torch's pool: the graph has memory of its own, and would hold it a second
        // time.
        c10::cuda::CUDACachingAllocator::emptyCache();
        auto graph = std::make_unique<at::cuda::CUDAGraph>();
        // Threads of a loader may ask for memory meanwhile.
        graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
        try {
            step_();
        } catch (...) {
            try {
                graph->capture_end();
            } catch (const std::exception&) {  // the first error tells more
            }
            throw;
        }
        graph->capture_end();
        graph_ = std::move(graph);
    }

    c10::cuda::CUDAStream stream_;
    bool can_be_recorded_;
    std::function<void()> step_;
    std::unique_ptr<at::cuda::CUDAGraph> graph_;
    int calls_ = 0;
};

}  // namespace

std::unique_ptr<StepGraph::Recorder> make_recorder(torch::Device device, bool can_be_recorded,
                                                   std::function<void()> step) {
    return std::make_unique<CudaRecorder>(device, can_be_recorded, std::move(step));
}

}  // namespace stipple::learn
