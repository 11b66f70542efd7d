#pragma once
// Sorting many short runs of keys. Included by .cu files only.

#include "stipple/ops/common/cuda_launch.h"

namespace stipple::ops::cuda {

/// Sorts keys[begins[i] .. ends[i]) for every i. All runs lie inside [0, count). Returns where the result is: keys or
/// spare, which has as many.
const uint64_t* sort_segments(uint64_t* keys, uint64_t* spare, int64_t count, const int64_t* begins,
                              const int64_t* ends, int64_t segments, cudaStream_t stream);

}  // namespace stipple::ops::cuda
