#pragma once
// Device memory that counts itself. Included by .cu files only.

#include <algorithm>
#include <utility>
#include <vector>

#include "stipple/core/cuda/check.h"
#include "stipple/core/cuda/memory.h"

namespace stipple::radiance::cuda {

struct MemoryMeter {
    int64_t now = 0, peak = 0;
    int device = 0;
};

template <class T>
class DeviceArray {
public:
    DeviceArray() = default;
    /// Uninitialised.
    DeviceArray(MemoryMeter& meter, int64_t count) : meter_(&meter), count_(count) {
        data_ = static_cast<T*>(stipple::cuda::allocate(std::max<int64_t>(bytes(), 1), meter.device));
        meter.now += bytes();
        meter.peak = std::max(meter.peak, meter.now);
    }
    DeviceArray(MemoryMeter& meter, const std::vector<T>& values)
        : DeviceArray(meter, static_cast<int64_t>(values.size())) {
        upload(values);
    }
    DeviceArray(DeviceArray&& other) noexcept { swap(other); }
    DeviceArray& operator=(DeviceArray&& other) noexcept {
        DeviceArray(std::move(other)).swap(*this);
        return *this;
    }
    ~DeviceArray() {
        if (!data_) return;
        stipple::cuda::release(data_, meter_->device);
        meter_->now -= bytes();
    }

    T* get() const { return data_; }
    int64_t count() const { return count_; }
    int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }
    void clear(cudaStream_t stream) {
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(data_, 0, static_cast<size_t>(bytes()), stream));
    }
    /// Other streams may read it when this returns: a copy from pageable memory alone may still be under way.
    void upload(const std::vector<T>& values) {
        STIPPLE_CHECK_CUDA(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(nullptr));
    }
    std::vector<T> download() const {
        std::vector<T> values(static_cast<size_t>(count_));
        STIPPLE_CHECK_CUDA(cudaMemcpy(values.data(), data_, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }
    void swap(DeviceArray& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(meter_, other.meter_);
        std::swap(count_, other.count_);
    }

private:
    T* data_ = nullptr;
    MemoryMeter* meter_ = nullptr;
    int64_t count_ = 0;
};

}  // namespace stipple::radiance::cuda
