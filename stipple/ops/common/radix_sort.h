#pragma once
// The radix sorts that several ops share, compiled once: CUB's kernels take longer to compile than most ops. Included
// by .cu files only.

#include "stipple/ops/common/cuda_launch.h"

namespace stipple::ops::cuda {

/// Keys, or values, and as much room; a sort leaves its result in either.
template <class T>
struct SortBuffer {
    T *current = nullptr, *spare = nullptr;
};

/// Scratch that sort_pairs needs for so many pairs.
int64_t sort_pairs_bytes(int64_t count, int bits, cudaStream_t stream);

/// Sorts pairs by the lowest `bits` bits of their keys, ascending and stable. scratch: sort_pairs_bytes(count, bits)
/// bytes. Swaps current and spare where the result is in spare.
void sort_pairs(void* scratch, int64_t scratch_bytes, SortBuffer<uint64_t>& keys, SortBuffer<int32_t>& values,
                int64_t count, int bits, cudaStream_t stream);

/// The same into other memory; allocates its scratch.
void sort_pairs(const uint64_t* keys, uint64_t* sorted_keys, const int32_t* values, int32_t* sorted_values,
                int64_t count, int bits, cudaStream_t stream);

/// Descending by all 64 bits, equal keys in their order.
void sort_pairs_descending(const uint64_t* keys, uint64_t* sorted_keys, const int32_t* values, int32_t* sorted_values,
                           int64_t count, cudaStream_t stream);

/// Ascending.
void sort_keys(const int32_t* keys, int32_t* sorted_keys, int64_t count, cudaStream_t stream);

}  // namespace stipple::ops::cuda
