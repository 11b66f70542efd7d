#pragma once
// What the two CUDA paths of farthest_point_sample share. Included by .cu files only.
//
// Squared distances are kept as the integers of the same bits, whose order is the same; -1 marks a point that is chosen
// already, not finite, or not there.

#include <climits>

#include "stipple/core/numeric.h"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::ops::cuda {

constexpr int kSlots = 8;                    // points in the registers of a thread
constexpr int kBlockPoints = kSlots * 1024;  // the most that one block holds
constexpr int32_t kChosen = -1;
constexpr int32_t kNoIndex = INT_MAX;

struct FarthestTask {
    const float* rows;
    int64_t row_stride;
    DeviceBatch points, samples;
    const int32_t* given_counts;  // [clouds], how many samples of a cloud are in `indices` already: its chosen points
    int32_t* indices;
    float* distances_sq;  // null when they are not wanted
};

/// The clouds of up to kBlockPoints points, the largest of which has `largest`: one block each.
void sample_by_blocks(const FarthestTask& task, int64_t largest, cudaStream_t stream);

/// The larger ones: groups of blocks that are resident together.
void sample_by_groups(const FarthestTask& task, const Batch& points, cudaStream_t stream);

#ifdef __CUDACC__
__device__ inline int32_t warp_max(int32_t value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(~0u, value);
#else
    for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(~0u, value, step));
    return value;
#endif
}

__device__ inline int32_t warp_min(int32_t value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(~0u, value);
#else
    for (int step = 16; step > 0; step /= 2) value = min(value, __shfl_xor_sync(~0u, value, step));
    return value;
#endif
}

__device__ inline int lowest_lane(bool mine) {
    return __ffs(static_cast<int>(__ballot_sync(~0u, mine))) - 1;
}

/// The lane with the largest key, ties to the lowest index.
__device__ inline int farthest_lane(int32_t key, int32_t index) {
    const int32_t largest = warp_max(key);
    const int32_t lowest = warp_min(key == largest ? index : kNoIndex);
    return lowest_lane(key == largest && (index == lowest || lowest == kNoIndex));
}

/// The points of a thread and their distances to the chosen ones.
struct Points {
    float x[kSlots], y[kSlots], z[kSlots];
    int32_t key[kSlots];

    /// Takes a sample into account. The largest key.
    __device__ int32_t update(float px, float py, float pz) {
        int32_t largest = kChosen;
#pragma unroll
        for (int i = 0; i < kSlots; ++i) {
            key[i] = min(key[i], __float_as_int(distance_sq(x[i] - px, y[i] - py, z[i] - pz)));
            largest = max(largest, key[i]);
        }
        return largest;
    }
    __device__ int32_t largest() const {
        int32_t result = kChosen;
#pragma unroll
        for (int i = 0; i < kSlots; ++i) result = max(result, key[i]);
        return result;
    }
    /// The first slot with that key.
    __device__ int slot_of(int32_t wanted) const {
        int slot = 0;
#pragma unroll
        for (int i = kSlots - 1; i >= 0; --i) slot = key[i] == wanted ? i : slot;
        return slot;
    }
    /// Marks a slot as chosen. The key it had.
    __device__ int32_t choose(int slot) {
        int32_t before = kChosen;
#pragma unroll
        for (int i = 0; i < kSlots; ++i) {
            if (i == slot) {
                before = key[i];
                key[i] = kChosen;
            }
        }
        return before;
    }
};
#endif

}  // namespace stipple::ops::cuda
