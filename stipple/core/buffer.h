#pragma once
// Buffer: bytes on one device, its own (uninitialised, 64-byte aligned) or borrowed from whoever made them. The only
// place that allocates array memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "stipple/core/device.h"

namespace stipple {

class Buffer {
public:
    Buffer() = default;

    /// Throws Error{out_of_memory} that names the bytes wanted, Error{bad_argument} for a negative size.
    explicit Buffer(int64_t bytes, Device device = {});

    /// Memory of somebody else, aligned as they left it: `owner` keeps it and is let go with the last use. Clones own
    /// their memory.
    static Buffer borrowed(void* data, int64_t bytes, Device device, std::shared_ptr<void> owner);

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
        owner_.swap(other.owner_);
    }

private:
    std::byte* data_ = nullptr;
    int64_t bytes_ = 0;
    Device device_;
    std::shared_ptr<void> owner_;  // of borrowed memory
};

/// Copies bytes between devices; blocks until done.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, int64_t bytes);

}  // namespace stipple
