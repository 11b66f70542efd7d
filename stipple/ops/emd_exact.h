#pragma once

#include "stipple/ops/clouds.h"
#include "stipple/ops/distance_norm.h"

namespace stipple::ops {

constexpr int64_t kEmdExactMost = 4096;  // points of a cloud

/// Caller-allocated and contiguous; an empty view leaves that output out.
struct EmdExactOutput {
    View<double, 1> cost;            // [clouds] mean over the matched pairs
    View<int32_t, 1> matching;       // [rows of a] the partner in b, a bijection in every cloud
    View<double, 1> dual_a, dual_b;  // [rows of a], [rows of b]: the proof, see below
};

/// The least costly one-to-one matching, exactly: costs in double, no tolerance but double's rounding. CPU.
///
/// a, b  [n, 3], n <= 4096; the same number of clouds and of points in each
///
/// The duals prove it: dual_a[i] + dual_b[j] <= cost(i, j) for all pairs, with equality on the matched ones, up to
/// about 1e-15 of the clouds' extent; so mean(dual_a) + mean(dual_b) is the cost. Where several matchings are optimal,
/// which one is returned depends on the points alone, not on threads. A cloud with a non-finite point gets matching -1
/// and NaN for the rest; an empty cloud cost NaN. emd_backward gives the gradient.
///
/// Shortest augmenting paths [Jonker and Volgenant 1987] from the prices of emd at a gap of 0.2 %. O(n) memory,
/// O(n^3) time at worst, near n^2.3 on clouds. Throws Error{bad_argument} for wrong shapes, sizes that differ or are
/// too large, and points that are not on the CPU.
void emd_exact(const Clouds& a, const Clouds& b, const EmdExactOutput& out,
               DistanceNorm norm = DistanceNorm::euclidean);

}  // namespace stipple::ops
