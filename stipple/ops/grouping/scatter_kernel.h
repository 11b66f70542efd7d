#pragma once
// The CUDA driver of scatter_terms.h. Included by .cu files only.

#include "stipple/ops/grouping/grouping_cuda.h"
#include "stipple/ops/grouping/scatter_terms.h"

namespace stipple::ops::cuda {

/// A row of threads for each row of the result, one thread a column: coalesced reads, a fixed order, no atomics.
template <class Terms>
__global__ void scatter_rows(const int32_t* __restrict__ ranges, const int32_t* __restrict__ positions, Terms terms,
                             int64_t n, int64_t columns, float* __restrict__ out) {
    const int64_t row = row_of_thread();
    if (row >= n) return;
    const int32_t begin = ranges[2 * row], end = ranges[2 * row + 1];
    for (int64_t l = threadIdx.x; l < columns; l += blockDim.x) {
        double sum = 0;
#pragma unroll 4
        for (int32_t p = begin; p < end; ++p) {
            const int32_t entry = positions[p];
            for (int64_t term = 0; term < terms.per_entry; ++term) {
                const auto column = terms.columns(entry, term);
                if (column.any) sum += column(l);
            }
        }
        out[row * columns + l] = static_cast<float>(sum);
    }
}

template <class Terms>
void scatter(const InvertedIndex& inverse, const Terms& terms, View<float, 2> out, cudaStream_t stream) {
    const RowBlocks shape(out.size(0), out.size(1));
    scatter_rows<<<shape.grid, shape.block, 0, stream>>>(inverse.ranges.data(), inverse.positions.data(), terms,
                                                         out.size(0), out.size(1), out.data());
    STIPPLE_CHECK_LAUNCH(scatter_rows);
}

}  // namespace stipple::ops::cuda
