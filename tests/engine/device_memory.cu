#include "stipple/core/cuda/check.h"
#include "tests/ops/device_memory.h"

namespace stipple::test {

int64_t cuda_memory_used(int index) {
    STIPPLE_CHECK_CUDA(cudaSetDevice(index));
    size_t free_bytes = 0, total_bytes = 0;
    STIPPLE_CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    return static_cast<int64_t>(total_bytes - free_bytes);
}

}  // namespace stipple::test
