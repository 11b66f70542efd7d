#pragma once
// CUDA events, copies that overlap, and memory in use: what timing an engine needs. CUDA builds only.

#include <cstdint>
#include <utility>
#include <vector>

#include "stipple/core/device.h"

namespace stipple::engine::cuda {

/// A stream of its own, and marks in it.
class Timer {
public:
    Timer(Device device, int marks);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    Stream stream() const { return stream_; }
    /// Queues a mark: its time is when the stream gets there.
    void mark(int i);
    /// Queues a copy between host and device memory.
    void copy(void* to, const void* from, int64_t bytes);
    /// Blocks until the stream is done.
    void wait();
    /// Between two marks that the stream has passed.
    double seconds(int from, int to) const;

private:
    Device device_;
    Stream stream_;
    std::vector<void*> events_;
};

/// Page-locked host memory, which copies reach without a detour.
class PinnedMemory {
public:
    explicit PinnedMemory(int64_t bytes);
    PinnedMemory(PinnedMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    ~PinnedMemory();
    void* data() const { return data_; }

private:
    void* data_ = nullptr;
};

/// Of the device's memory, by all programs.
int64_t used_bytes(Device device);

}  // namespace stipple::engine::cuda
