#pragma once

#include "stipple/ops/neighbours.h"

namespace stipple::ops {

/// SampleNet's soft projection of queries onto a cloud [Lang et al. 2020]: r = sum over the neighbours of w p,
/// w = softmax(-|p - q|^2 / sigma), sigma = max(t^2, min_sigma).
///
/// points, queries  [n, 3], [m, 3], as many clouds
/// neighbours       [m, k] indices into the clouds of `points`, batch of `queries`: knn's k nearest
/// temperature      [1], t; on the same device, for it is learned
/// min_sigma        >= 0; published code clamps at 1e-2 or 1e-4, or not at all
/// weights          [m, k]; interpolate() propagates features with them
/// projected        [m, 3]
///
/// sigma = 0 (t = 0 without a clamp) gives the nearest neighbour itself, of equally near ones the lowest index, and is
/// the limit of t -> 0 where there is no tie; the projection is then idempotent. Missing neighbours, and ones at a
/// distance that is not finite, weigh 0; a query without any gets zeros. In double and rounded once: CPU and CUDA agree
/// to 1e-6 relative. Throws Error{bad_argument} for wrong shapes, mixed devices, negative min_sigma. O(m k) time.
void soft_project(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                  View<const float, 1> temperature, float min_sigma, View<float, 2> weights, View<float, 2> projected,
                  Stream stream = {});

/// Gradients of soft_project with respect to the queries, through the distances only: the choice of neighbours is not
/// differentiated, and the points get none, as in the paper; and with respect to t.
///
/// dL_dprojected    [m, 3] contiguous, or an empty view: zero
/// dL_dweights      [m, k] contiguous, or an empty view: zero; what interpolate_backward_weights gave for the features
/// dL_dqueries      [m, 3]
/// dL_dtemperature  [1], 0 where the clamp is active (t^2 <= min_sigma); a sum over all queries in a fixed order
void soft_project_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                           View<const float, 1> temperature, float min_sigma, View<const float, 2> dL_dprojected,
                           View<const float, 2> dL_dweights, View<float, 2> dL_dqueries, View<float, 1> dL_dtemperature,
                           Stream stream = {});

namespace cuda {
void soft_project(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                  View<const float, 1> temperature, float min_sigma, View<float, 2> weights, View<float, 2> projected,
                  Stream stream);
void soft_project_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                           View<const float, 1> temperature, float min_sigma, const float* dL_dprojected,
                           const float* dL_dweights, View<float, 2> dL_dqueries, View<float, 1> dL_dtemperature,
                           Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
