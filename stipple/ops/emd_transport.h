#pragma once

#include <vector>

#include "stipple/ops/emd.h"
#include "stipple/ops/emd_exact.h"

namespace stipple::ops {

struct EmdFlow {
    int32_t from, to;  // points of a and b, counted within their clouds
    double mass;       // of the cloud's 1
};

struct EmdPlan {
    std::vector<EmdFlow> flows;       // by cloud, then from, then to; every mass above 0
    std::vector<int64_t> offsets;     // clouds + 1: where a cloud's flows begin
    std::vector<double> cost;         // [clouds] sum of mass * cost(from, to)
    std::vector<double> lower_bound;  // [clouds] no plan costs less; the cost itself when the plan is exact
};

/// Earth mover's distance between clouds of any two sizes, exactly: every point of a cloud of n weighs 1 / n. CPU.
///
/// a, b            [n, 3], [m, 3] with n, m <= 4096; the same number of clouds
/// dual_a, dual_b  [rows of a], [rows of b] double, or empty views: dual_a[i] + dual_b[j] <= cost(i, j), equal where
///                 mass flows, so mean(dual_a) + mean(dual_b) is the cost
///
/// Masses are integer numbers of units of gcd(n, m) / (n m): the plan's rows and columns add up exactly before the one
/// division. Between clouds of the same size the plan is a matching. A pair of clouds of which one is empty or has a
/// non-finite point gets no flows and cost NaN.
///
/// Successive shortest paths with capacities [Ahuja et al. 1993] from the prices of an auction between the larger
/// cloud and the repeated points of the smaller. Throws Error{bad_argument} for wrong shapes, clouds too large, and
/// points that are not on the CPU.
EmdPlan emd_transport(const Clouds& a, const Clouds& b, DistanceNorm norm = DistanceNorm::euclidean,
                      View<double, 1> dual_a = {}, View<double, 1> dual_b = {});

/// The same on CPU or CUDA, up to the gap of `options`: emd matches copies of the points, lcm(n, m) of each cloud's.
///
/// a, b  [n, 3], [m, 3], any n and m whose least common multiple is at most 2^20; the same device
///
/// CPU and CUDA give the same plan. Cost and memory are those of emd with lcm(n, m) points: sizes that divide each
/// other (2048 and 8192) cost no more than the larger cloud does. Waits for the device. Throws Error{bad_argument} as
/// emd does, and where the multiple is too large.
EmdPlan emd_transport_auction(const Clouds& a, const Clouds& b, const EmdOptions& options = {}, Stream stream = {});

/// Gradient of a loss of the plan's cost with respect to the points, the plan held fixed. CPU or CUDA (by way of the
/// CPU; points must then be contiguous).
///
/// norm           as given to emd_transport, or in the options of emd_transport_auction
/// dL_dcost       [clouds]
/// dL_da, dL_db   [n, 3], [m, 3], written; an empty view is left out
///
/// The gradient of a distance of 0 is 0. Summed in the plan's order, in double.
void emd_transport_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, const EmdPlan& plan,
                            View<const float, 1> dL_dcost, View<float, 2> dL_da, View<float, 2> dL_db);

}  // namespace stipple::ops
