#include "stipple/core/cuda/check.h"
#include "stipple/engine/cuda/timer.h"

namespace stipple::engine::cuda {
namespace {

cudaStream_t stream_of(Stream stream) {
    return static_cast<cudaStream_t>(stream.handle);
}

}  // namespace

Timer::Timer(Device device, int marks) : device_(device) {
    STIPPLE_CHECK_CUDA(cudaSetDevice(device.index));
    cudaStream_t stream{};
    STIPPLE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    stream_.handle = stream;
    for (int i = 0; i < marks; ++i) {
        cudaEvent_t event{};
        STIPPLE_CHECK_CUDA(cudaEventCreate(&event));
        events_.push_back(event);
    }
}

Timer::~Timer() {
    if (cudaSetDevice(device_.index) != cudaSuccess) return;
    cudaStreamSynchronize(stream_of(stream_));
    for (void* event : events_) cudaEventDestroy(static_cast<cudaEvent_t>(event));
    cudaStreamDestroy(stream_of(stream_));
}

void Timer::mark(int i) {
    STIPPLE_CHECK_CUDA(cudaEventRecord(static_cast<cudaEvent_t>(events_[static_cast<size_t>(i)]), stream_of(stream_)));
}

void Timer::copy(void* to, const void* from, int64_t bytes) {
    STIPPLE_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream_of(stream_)));
}

void Timer::wait() {
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream_of(stream_)));
}

double Timer::seconds(int from, int to) const {
    float milliseconds = 0;
    STIPPLE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(events_[static_cast<size_t>(from)]),
                                            static_cast<cudaEvent_t>(events_[static_cast<size_t>(to)])));
    return 1e-3 * milliseconds;
}

PinnedMemory::PinnedMemory(int64_t bytes) {
    STIPPLE_CHECK_CUDA(cudaMallocHost(&data_, static_cast<size_t>(bytes > 0 ? bytes : 1)));
}

PinnedMemory::~PinnedMemory() {
    if (data_) cudaFreeHost(data_);
}

int64_t used_bytes(Device device) {
    STIPPLE_CHECK_CUDA(cudaSetDevice(device.index));
    size_t free_bytes = 0, total_bytes = 0;
    STIPPLE_CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    return static_cast<int64_t>(total_bytes - free_bytes);
}

}  // namespace stipple::engine::cuda
