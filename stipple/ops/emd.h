#pragma once
// Earth mover's distance between clouds of the same size, by auction. emd_exact.h: the exact solver and unequal sizes.

#include "stipple/ops/clouds.h"
#include "stipple/ops/distance_norm.h"

namespace stipple::ops {

struct EmdOptions {
    DistanceNorm norm = DistanceNorm::euclidean;
    float relative = 0.01f;  // the search ends when cost - lower_bound <= max(relative * lower_bound, absolute)
    float absolute = 0.0f;   // in the unit of the cost
};

/// Caller-allocated, contiguous, on the points' device.
struct EmdOutput {
    View<float, 1> cost;         // [clouds] mean over the matched pairs
    View<float, 1> lower_bound;  // [clouds] no matching costs less: it follows from the final prices
    View<int32_t, 1> matching;   // [rows of a] the partner in b, a bijection in every cloud
};

/// Earth mover's distance: the cheapest one-to-one matching of the points of a with those of b, up to a gap that the
/// caller chooses and can verify: lower_bound <= least cost <= cost.
///
/// a, b  [n, 3], any n up to 2^20; the same number of clouds and of points in each; the same device
///
/// The gap that is asked for is reached unless it is below 2^-18 of the longer side of the clouds' common box, which
/// is the limit of float prices (for squared costs: of its square); lower_bound already allows for every rounding
/// (2^-19 of the same). Costs are computed in float and summed exactly.
///
/// CPU and CUDA give the same matching, cost and bound, on any number of threads. Ties are broken by a fixed rule.
/// A cloud with a non-finite point gets matching -1, cost and bound NaN; an empty cloud cost and bound NaN.
/// Throws Error{bad_argument} for wrong shapes, sizes that differ, mixed devices, negative or non-finite options.
///
/// Auction with eps scaling [Bertsekas 1988] until few points are unassigned, which wait for the next eps; in the last
/// phases, and where an auction does not get that far, they are assigned by augmenting paths on rounded reduced costs
/// [Gabow and Tarjan 1989]. Then pairs swap partners where that lowers the cost, and the dual prices take a few steps
/// towards those of a soft assignment [Cuturi 2013] until they prove the gap: emd/README.md. O(n) memory: up to 3 kB a
/// point on CUDA, 7 kB on the CPU. Every phase ends: at most 4096 bidding rounds, then searches that each assign a
/// point or raise prices by 4096 eps, then 24 steps; at most 40 phases. In practice about 25 n^2 pair evaluations for a
/// gap of 1 %, most of them skipped in whole boxes.
void emd(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options = {}, Stream stream = {});

/// Gradient of a loss of emd's cost with respect to the points, through the matched pairs.
///
/// norm           as in the options of emd
/// matching       [rows of a], from emd or emd_exact; a point with matching -1 has gradient 0
/// dL_dcost       [clouds]
/// dL_da, dL_db   [n, 3], written; an empty view is left out
///
/// The gradient of a distance of 0 is 0. Deterministic: every row is written once.
void emd_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, View<const int32_t, 1> matching,
                  View<const float, 1> dL_dcost, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream = {});

namespace cuda {
void emd(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, Stream stream);
void emd_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, View<const int32_t, 1> matching,
                  View<const float, 1> dL_dcost, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
