#pragma once
// Sample elimination: what CPU and CUDA share. Not for users: poisson_disk.h is.
//
// Why parallel elimination gives what one removal after the other gives. Order the living samples by (weight sum
// descending, index ascending). The sums only ever fall, by exact integers, when a neighbour goes.
//   1. One after the other, the keys (sum at removal, index) come in falling order: after a removal all sums are as
//      they were or lower, so the next maximum is not above the last. Hence the order of removal is the order of keys.
//   2. A sample i that stands before all its living neighbours is removed with the sum it has now: a neighbour j stands
//      behind i, can only fall, and so is not removed before i; what is not a neighbour does not change i's sum.
// So rounds that remove all local maxima at once give every sample the same key, and the n - m largest keys are the
// samples that go. Rounds may stop when n - m keys lie above every living sum.

#include <cstdint>
#include <functional>
#include <vector>

#include "stipple/core/numeric.h"
#include "stipple/ops/poisson_disk.h"
#include "stipple/ops/sampling/voxel_cell.h"

namespace stipple::ops {

/// (1 - d / reach)^8 in multiples of 2^-30, 0 from d = 0.926 reach on: sums of 2^31 of them fit in 63 bits.
STIPPLE_HD int32_t poisson_weight(float dist_sq, float inverse_reach) {
#ifdef __CUDA_ARCH__
    float t = __fsub_rn(1.0f, __fmul_rn(__fsqrt_rn(dist_sq), inverse_reach));
#else
    float t = 1.0f - __builtin_sqrtf(dist_sq) * inverse_reach;
#endif
    t = t > 0 ? t : 0;
    t *= t;
    t *= t;
    t *= t;
    return static_cast<int32_t>(t * 0x1p30f);
}

/// Neighbours of non-zero weight lie in cells of this edge that touch.
inline constexpr float kPoissonCell = 0.93f;

/// 2 pi / sqrt(3): samples in a disc of radius 2 r_max on the densest packing of the plane.
inline constexpr double kPoissonNeighbours = 3.6275987284684357;

/// Points whose neighbours are counted for the radius.
inline constexpr int64_t kPoissonQueries = 2048;

/// The query'th of the points that are asked, in an order of n.
STIPPLE_HD int64_t poisson_query(int64_t query, int64_t queries, int64_t n) {
    return query * n / queries;
}

/// The edge of cells for neighbours within `reach`: not so small that the box would have too many of them.
float poisson_cell_size(const FiniteBox& box, float reach);
std::array<double, 3> poisson_cell_origin(const FiniteBox& box);

/// 2 r_max for m of `finite` points: solves sum 1 / c_i = m / kPoissonNeighbours. `inverse_counts(reach)` is the sum
/// over the queries of floor(2^32 / c_i).
float solve_poisson_reach(const FiniteBox& box, int64_t finite, int64_t m,
                          const std::function<uint64_t(float reach)>& inverse_counts);

namespace cpu {
/// One cloud. `radius` 0 asks for the estimate.
void poisson_disk(View<const float, 2> points, int32_t* out, int64_t m, const PoissonDiskOptions& options);
float poisson_reach(View<const float, 2> points, int64_t m);
void poisson_disk_of_part(View<const float, 2> points, View<const uint8_t, 1> roles, View<const uint8_t, 1> factors,
                          float radius, View<int32_t, 1> indices);
/// The samples (indices into points) in progressive order.
void progressive_order(View<const float, 2> points, const PoissonDiskOptions& options, int32_t* samples, int64_t m);
}  // namespace cpu

namespace cuda {
/// `chosen` is false when points lie so dense that the CPU is to do it; `out` is then untouched.
void poisson_disk(View<const float, 2> points, int32_t* out, int64_t m, float radius, bool& chosen, Stream stream);
void poisson_reach(View<const float, 2> points, int64_t m, float& reach, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
