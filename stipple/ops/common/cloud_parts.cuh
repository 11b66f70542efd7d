#pragma once
// Reductions over the clouds of a batch in a fixed order: every cloud is cut into the same number of parts, one block
// each; a cloud of one part needs no second launch. Included by .cu files only.

#include "stipple/ops/common/cuda_launch.h"

namespace stipple::ops::cuda {

constexpr int kPartThreads = 1024;
constexpr int64_t kRowsPerPart = 65536;  // 64 a thread: about what a second launch costs

inline int64_t parts_of(int64_t largest_cloud) {
    return std::max<int64_t>(1, (largest_cloud + kRowsPerPart - 1) / kRowsPerPart);
}

/// Combines the values of a block's kPartThreads threads by a tree that is always the same; the result is in thread 0.
template <class T, class Combine>
__device__ T reduce_block(T value, T* shared /* [32] */, const Combine& combine) {
    for (int step = 16; step > 0; step /= 2) value = combine(value, T::shuffle_down(value, step));
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads();  // the last reduction's readers are done
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = shared[lane];
        for (int step = 16; step > 0; step /= 2) value = combine(value, T::shuffle_down(value, step));
    }
    return value;
}

}  // namespace stipple::ops::cuda
