#pragma once
// Buffer: owned, uninitialised, 64-byte aligned bytes on one device. The only place that allocates array memory.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "stipple/core/device.h"

namespace stipple {

class Buffer {
public:
    Buffer() = default;

    /// Throws Error{out_of_memory} that names the bytes wanted, Error{bad_argument} for a negative size.
    explicit Buffer(int64_t bytes, Device device = {});

    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer(std::move(other)).swap(*this);
        return *this;
    }
    ~Buffer();

    std::byte* data() { return data_; }
    const std::byte* data() const { return data_; }
    int64_t bytes() const { return bytes_; }
    Device device() const { return device_; }

    Buffer clone() const;            // same device
    Buffer to(Device device) const;  // copied there
    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(device_, other.device_);
    }

private:
    std::byte* data_ = nullptr;
    int64_t bytes_ = 0;
    Device device_;
};

/// Copies bytes between devices; blocks until done.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, int64_t bytes);

}  // namespace stipple
