#include <atomic>

#include "stipple/ops/common/cuda_launch.h"

namespace stipple::ops::cuda {
namespace {

/// By default a pool gives its memory back to the driver at every synchronisation; ours keeps it.
void keep_pool_memory(int device) {
    static std::atomic<uint64_t> done{0};  // one bit a device: set once, harmless when two threads set it
    const uint64_t bit = uint64_t{1} << (device & 63);
    if (done.load(std::memory_order_relaxed) & bit) return;
    cudaMemPool_t pool = nullptr;
    STIPPLE_CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
    uint64_t threshold = UINT64_MAX;
    STIPPLE_CHECK_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    done.fetch_or(bit, std::memory_order_relaxed);
}

}  // namespace

void* allocate_scratch(int64_t bytes, cudaStream_t stream) {
    if (bytes == 0) return nullptr;
    int device = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    keep_pool_memory(device);
    void* memory = nullptr;
    const cudaError_t status = cudaMallocAsync(&memory, static_cast<size_t>(bytes), stream);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();  // the device stays usable
        size_t free_bytes = 0, total_bytes = 0;
        cudaMemGetInfo(&free_bytes, &total_bytes);
        throw Error(
            ErrorCode::out_of_memory,
            fmt::format("out of memory on cuda:{}: {} bytes of scratch wanted, {} free", device, bytes, free_bytes));
    }
    STIPPLE_CHECK_CUDA(status);
    return memory;
}

void release_scratch(void* memory, cudaStream_t stream) noexcept {
    if (memory != nullptr) cudaFreeAsync(memory, stream);  // an error here has been reported by whatever caused it
}

}  // namespace stipple::ops::cuda
