#pragma once
// The prefix sums that several ops share, compiled once: see radix_sort.h. Included by .cu files only.

#include "stipple/ops/common/cuda_launch.h"

namespace stipple::ops::cuda {

/// values[i] becomes the sum of values[0] to values[i].
void inclusive_sum(uint32_t* values, int64_t count, cudaStream_t stream);

/// sums[i] = values[0] + ... + values[i] in 64 bits.
void inclusive_sum(const int32_t* values, int64_t* sums, int64_t count, cudaStream_t stream);

}  // namespace stipple::ops::cuda
