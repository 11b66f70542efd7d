#include <algorithm>
#include <cmath>

#include "stipple/core/cuda/check.h"
#include "stipple/core/cuda/events.h"

namespace stipple::cuda {
namespace {

cudaEvent_t event_of(void* event) {
    return static_cast<cudaEvent_t>(event);
}

/// The thread may work on another device: that is not changed.
class OnDevice {
public:
    explicit OnDevice(int index) {
        STIPPLE_CHECK_CUDA(cudaGetDevice(&before_));
        STIPPLE_CHECK_CUDA(cudaSetDevice(index));
    }
    ~OnDevice() { cudaSetDevice(before_); }

private:
    int before_ = 0;
};

}  // namespace

EventLog::EventLog(int device_index) : device_(device_index) {}

EventLog::~EventLog() {
    for (void* event : events_) cudaEventDestroy(event_of(event));
}

void EventLog::start(Stream stream) {
    const OnDevice on(device_);
    STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
    used_ = 0;
    mark(stream);
}

int32_t EventLog::mark(Stream stream) {
    const OnDevice on(device_);
    if (used_ == events_.size()) {
        cudaEvent_t event{};
        STIPPLE_CHECK_CUDA(cudaEventCreate(&event));
        events_.push_back(event);
    }
    STIPPLE_CHECK_CUDA(cudaEventRecord(event_of(events_[used_]), static_cast<cudaStream_t>(stream.handle)));
    return static_cast<int32_t>(used_++);
}

void EventLog::wait() {
    const OnDevice on(device_);
    STIPPLE_CHECK_CUDA(cudaDeviceSynchronize());
}

int64_t EventLog::nanoseconds(int32_t mark) const {
    float milliseconds = 0;
    STIPPLE_CHECK_CUDA(
        cudaEventElapsedTime(&milliseconds, event_of(events_[0]), event_of(events_[static_cast<size_t>(mark)])));
    return std::max<int64_t>(0, std::llround(1e6 * static_cast<double>(milliseconds)));
}

}  // namespace stipple::cuda
