#pragma once
// Two sums for every column of a matrix, in double and in a fixed order: over the lanes of a block as a tree, then over
// the parts of the rows, lane by lane and as a tree again. No atomics.
//
// A block stores two numbers for each column of its part. What becomes of them says a struct, Terms:
//   double2 term(double2 stored, double2 first, int64_t part)  what is added up; first is what part 0 stored
//   void finish(int64_t column, double2 first, double2 sums)   writes the column's results

#include "stipple/ops/products/row_access.cuh"

namespace stipple::ops::cuda {

/// sums[.][.][t] of a block's threads t, lanes times groups, becomes the sum over the lanes in lane 0. All threads;
/// may be read afterwards.
template <int kWidth>
__device__ inline void add_lanes(double (&sums)[2][kWidth][kAccessThreads], int lanes, int groups) {
    const int lane = threadIdx.x / groups;
    __syncthreads();
    for (int half = lanes > 1 ? 1 << (31 - __clz(lanes - 1)) : 0; half > 0; half /= 2) {
        if (lane < half && lane + half < lanes) {
#pragma unroll
            for (int i = 0; i < kWidth; ++i) {
                sums[0][i][threadIdx.x] += sums[0][i][threadIdx.x + half * groups];
                sums[1][i][threadIdx.x] += sums[1][i][threadIdx.x + half * groups];
            }
        }
        __syncthreads();
    }
}

constexpr int kCombineColumns = 4, kCombineLanes = kAccessThreads / kCombineColumns;

/// stored [parts, columns]. A block has four columns, a thread every 64th part of one.
template <class Terms>
__global__ void __launch_bounds__(kAccessThreads)
    combine_parts(const double2* stored, int64_t parts, int64_t columns, const __grid_constant__ Terms terms) {
    __shared__ double sums[2][1][kAccessThreads];
    const int lane = threadIdx.x / kCombineColumns;
    const int64_t column = static_cast<int64_t>(blockIdx.x) * kCombineColumns + threadIdx.x % kCombineColumns;
    const bool is_there = column < columns;
    double2 first = make_double2(0, 0), sum = make_double2(0, 0);
    if (is_there) {
        first = stored[column];
#pragma unroll 4
        for (int64_t part = lane; part < parts; part += kCombineLanes) {
            const double2 term = terms.term(stored[part * columns + column], first, part);
            sum.x += term.x, sum.y += term.y;
        }
    }
    sums[0][0][threadIdx.x] = sum.x, sums[1][0][threadIdx.x] = sum.y;
    add_lanes(sums, kCombineLanes, kCombineColumns);
    if (is_there && lane == 0)
        terms.finish(column, first, make_double2(sums[0][0][threadIdx.x], sums[1][0][threadIdx.x]));
}

template <class Terms>
void launch_combine(const double2* stored, const Sharing& s, const Terms& terms, cudaStream_t stream) {
    combine_parts<<<blocks_for(s.columns, kCombineColumns), kAccessThreads, 0, stream>>>(stored, s.parts, s.columns,
                                                                                         terms);
    STIPPLE_CHECK_LAUNCH(combine_parts);
}

}  // namespace stipple::ops::cuda
