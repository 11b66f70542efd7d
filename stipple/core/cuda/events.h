#pragma once
// Moments on a GPU, for profiles. Implemented in cuda/events.cu; CUDA builds only.

#include <cstdint>
#include <vector>

#include "stipple/core/device.h"

namespace stipple::cuda {

/// Events are made as they are needed and used again after the next start(). Not for several threads at a time.
class EventLog {
public:
    explicit EventLog(int device_index);
    ~EventLog();
    EventLog(const EventLog&) = delete;
    EventLog& operator=(const EventLog&) = delete;

    /// Waits for the whole device, so that the caller's clock and the GPU's agree now; marks count from here.
    void start(Stream stream);
    /// Queues a moment on a stream of the device, and gives its number.
    int32_t mark(Stream stream);
    /// Until all marks have passed.
    void wait();
    /// Between start() and a mark that has passed; not below 0.
    int64_t nanoseconds(int32_t mark) const;

private:
    int device_ = 0;
    std::vector<void*> events_;  // the first is that of start()
    size_t used_ = 0;
};

}  // namespace stipple::cuda
