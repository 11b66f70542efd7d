#include "stipple/core/buffer.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "stipple/core/cuda/memory.h"

namespace stipple {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr int64_t kHugePage = int64_t{2} << 20;

std::byte* allocate_host(int64_t bytes) {
    void* memory = ::operator new(static_cast<size_t>(bytes), kAlignment, std::nothrow);
    if (!memory) throw Error(ErrorCode::out_of_memory, fmt::format("out of memory: {} bytes wanted", bytes));
    // Large arrays are written once from end to end; huge pages save most of their page faults. Only advice: ignored
    // where the system has none.
    if (bytes >= 2 * kHugePage) {
        const auto begin = (reinterpret_cast<uintptr_t>(memory) + kHugePage - 1) & ~(kHugePage - 1);
        const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~(kHugePage - 1);
        if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    }
    return static_cast<std::byte*>(memory);
}

void* allocate_device([[maybe_unused]] int64_t bytes, [[maybe_unused]] int index) {
#ifdef STIPPLE_WITH_CUDA
    return cuda::allocate(bytes, index);
#else
    throw Error(ErrorCode::no_device, "built without CUDA: no memory on a GPU");
#endif
}

}  // namespace

Buffer::Buffer(int64_t bytes, Device device) : bytes_(bytes), device_(device) {
    STIPPLE_REQUIRE(bytes >= 0, "a buffer of {} bytes", bytes);
    if (bytes == 0) return;
    if (device.type == DeviceType::cpu)
        data_ = allocate_host(bytes);
    else
        data_ = static_cast<std::byte*>(allocate_device(bytes, device.index));
}

Buffer Buffer::borrowed(void* data, int64_t bytes, Device device, std::shared_ptr<void> owner) {
    STIPPLE_REQUIRE(bytes >= 0 && owner, "a borrowed buffer of {} bytes needs an owner", bytes);
    Buffer buffer;
    buffer.data_ = static_cast<std::byte*>(data);
    buffer.bytes_ = bytes;
    buffer.device_ = device;
    buffer.owner_ = std::move(owner);
    return buffer;
}

Buffer::~Buffer() {
    if (!data_ || owner_) return;
    if (device_.type == DeviceType::cpu) ::operator delete(data_, kAlignment);
#ifdef STIPPLE_WITH_CUDA
    else
        cuda::release(data_, device_.index);
#endif
}

Buffer Buffer::clone() const {
    return to(device_);
}

Buffer Buffer::to(Device device) const {
    Buffer copy(bytes_, device);
    copy_bytes(copy.data(), device, data_, device_, bytes_);
    return copy;
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, int64_t bytes) {
    if (bytes == 0) return;
    if (to_device.type == DeviceType::cpu && from_device.type == DeviceType::cpu)
        std::memcpy(to, from, static_cast<size_t>(bytes));
    else
        STIPPLE_CUDA_CALL(cuda::copy, to, from, bytes);
}

}  // namespace stipple
