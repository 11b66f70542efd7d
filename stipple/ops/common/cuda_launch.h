#pragma once
// What the .cu files of ops share: the device and stream of a launch, stream-ordered scratch, batches in kernels.
// Included by .cu files only.

#include "stipple/core/cuda/check.h"
#include "stipple/ops/clouds.h"
#include "stipple/ops/common/device_batch.h"

namespace stipple::ops::cuda {

inline cudaStream_t raw(Stream stream) {
    return static_cast<cudaStream_t>(stream.handle);
}

/// Makes a device current for the scope's launches, and the old one again afterwards.
class CurrentDevice {
public:
    explicit CurrentDevice(Device device) {
        STIPPLE_CHECK_CUDA(cudaGetDevice(&before_));
        if (before_ != device.index) STIPPLE_CHECK_CUDA(cudaSetDevice(device.index));
        device_ = device.index;
    }
    ~CurrentDevice() {
        if (before_ != device_) cudaSetDevice(before_);
    }
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

private:
    int before_ = 0, device_ = 0;
};

/// The major number of a device's compute capability: 8 for sm_80.
inline int compute_major(int device) {
    int major = 0;
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return major;
}

/// Uninitialised memory of the current device, given back in stream order. The device's pool keeps what is given back,
/// so that a repeated op asks the driver for nothing. Throws Error{out_of_memory} with the bytes wanted.
void* allocate_scratch(int64_t bytes, cudaStream_t stream);
void release_scratch(void* memory, cudaStream_t stream) noexcept;

template <class T>
class Scratch {
public:
    Scratch() = default;
    Scratch(int64_t count, cudaStream_t stream)
        : data_(static_cast<T*>(allocate_scratch(checked_mul(count, sizeof(T)), stream))),
          count_(count),
          stream_(stream) {}
    Scratch(Scratch&& other) noexcept { swap(other); }
    Scratch& operator=(Scratch&& other) noexcept {
        Scratch(std::move(other)).swap(*this);
        return *this;
    }
    ~Scratch() { release_scratch(data_, stream_); }

    T* get() const { return data_; }
    int64_t count() const { return count_; }
    void swap(Scratch& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        std::swap(stream_, other.stream_);
    }

private:
    T* data_ = nullptr;
    int64_t count_ = 0;
    cudaStream_t stream_ = nullptr;
};

/// Holds the offsets of a ragged batch on the device for as long as it lives.
class UploadedBatch {
public:
    UploadedBatch(const Batch& batch, cudaStream_t stream) {
        view_.clouds = batch.clouds();
        view_.size = batch.is_dense() ? batch.largest() : 0;
        view_.rows = batch.rows();
        if (batch.is_dense()) return;
        offsets_ = Scratch<int64_t>(static_cast<int64_t>(batch.offsets().size()), stream);
        STIPPLE_CHECK_CUDA(cudaMemcpyAsync(offsets_.get(), batch.offsets().data(), offsets_.count() * sizeof(int64_t),
                                           cudaMemcpyHostToDevice, stream));
        view_.offsets = offsets_.get();
    }
    const DeviceBatch& view() const { return view_; }

private:
    Scratch<int64_t> offsets_;
    DeviceBatch view_;
};

inline unsigned blocks_for(int64_t items, int per_block) {
    return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace stipple::ops::cuda

/// After every launch: throws Error{cuda} with the kernel's name.
#define STIPPLE_CHECK_LAUNCH(kernel)                                                                         \
    do {                                                                                                     \
        const cudaError_t status_ = cudaGetLastError();                                                      \
        if (status_ != cudaSuccess)                                                                          \
            throw ::stipple::Error(::stipple::ErrorCode::cuda,                                               \
                                   fmt::format("kernel {} failed at {}:{}: {}", #kernel, __FILE__, __LINE__, \
                                               cudaGetErrorString(status_)));                                \
    } while (0)
