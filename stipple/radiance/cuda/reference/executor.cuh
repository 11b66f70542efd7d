#pragma once
// Runs the operations of the step-by-step reference on a GPU: a kernel each. Included by .cu files only.

#include <string>
#include <string_view>

#include "stipple/radiance/cuda/memory.cuh"
#include "stipple/radiance/cuda/reference/memory.h"
#include "stipple/radiance/train.h"

namespace stipple::radiance::reference {

/// A thread takes an element.
template <class Body>
__global__ void __launch_bounds__(256) each_kernel(const __grid_constant__ Body body, int64_t n) {
    const int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x;
    if (i < n) body(i);
}

class CudaExecutor {
public:
    template <class T>
    using Array = cuda::DeviceArray<T>;

    explicit CudaExecutor(int device);
    ~CudaExecutor();
    CudaExecutor(const CudaExecutor&) = delete;
    CudaExecutor& operator=(const CudaExecutor&) = delete;

    template <class T>
    Array<T> make(int64_t n) {
        return Array<T>(meter_, n);
    }
    template <class T>
    Array<T> upload(const std::vector<T>& values) {
        return Array<T>(meter_, values);
    }
    template <class T>
    std::vector<T> download(const Array<T>& array) {
        wait();
        return array.download();
    }

    template <class Body>
    void each(std::string_view part, int64_t n, const Body& body) {
        if (n > 0) {
            each_kernel<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream_>>>(body, n);
            STIPPLE_CHECK_CUDA(cudaGetLastError());
        }
        mark(part);
    }
    template <class T>
    void clear(std::string_view part, Array<T>& array, int64_t n) {
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(array.get(), 0, static_cast<size_t>(n) * sizeof(T), stream_));
        mark(part);
    }
    int64_t choose(std::string_view part, const uint8_t* flags, int64_t n, int32_t* list);
    int64_t sum_before(std::string_view part, const int32_t* counts, int64_t n, int32_t* sums);
    void multiply(std::string_view part, const Product& product);
    void add_all(std::string_view part, const float* values, int64_t n, double* to);

    void wait();
    int64_t bytes() const { return meter_.now; }
    int64_t peak_bytes() const { return meter_.peak; }

    /// From now on the end of each operation is noted; its time runs from the end of the one before. What the host
    /// needs to learn a count is a part of its own.
    void begin_profile();
    /// Times by part, in milliseconds, summed, in the order in which parts came.
    std::vector<StepPart> end_profile();

private:
    void mark(std::string_view part);
    void* scratch(size_t bytes);
    int32_t counted();

    cuda::MemoryMeter meter_;
    cudaStream_t stream_ = nullptr;
    Array<uint8_t> scratch_;
    Array<int32_t> count_;
    int32_t* host_count_ = nullptr;

    struct Noted {
        cudaEvent_t event;
        std::string part;
    };
    bool is_profiling_ = false;
    std::vector<Noted> noted_;
};

}  // namespace stipple::radiance::reference
