#pragma once
// three_interpolate: PointNet++'s feature propagation [Qi et al. 2017, eq. 2]. Features of few points at many:
//
//   const PointIndex index(known);
//   knn(index, queries, indices, distances_sq);                    // k = 3, or any other
//   three_weights(distances_sq, {}, weights);                      // [m, k]
//   interpolate(features, Neighbours(indices, queries.batch), as [m, 1, k], out);

#include "stipple/ops/clouds.h"

namespace stipple::ops {

struct InverseDistance {
    // Published code has both: 1 / (d^2 + eps) (the paper's p = 2, and what reproduces its tables) and 1 / (d + eps).
    enum class Power { squared, plain };
    Power power = Power::squared;
    float epsilon = 1e-8f;  // > 0
};

/// Weights in inverse proportion to the distance, summing to 1: w_j = u_j / sum u, u = 1 / (d_j^power + epsilon).
///
/// distances_sq  [m, k] squared distances, >= 0, contiguous; +infinity (knn's missing neighbour) or NaN weighs 0
/// weights       [m, k]; all 0 when no distance of a row is finite
///
/// In double, rounded once: CPU and CUDA agree exactly but for the last bit. Throws Error{bad_argument} for wrong
/// shapes, mixed devices, epsilon that is not positive. O(m k) time.
void three_weights(View<const float, 2> distances_sq, const InverseDistance& options, View<float, 2> weights,
                   Stream stream = {});

/// Gradient with respect to the squared distances. Zero for missing neighbours, and for plain distances at distance 0,
/// where there is none.
void three_weights_backward(View<const float, 2> distances_sq, const InverseDistance& options,
                            View<const float, 2> dL_dweights, View<float, 2> dL_ddistances_sq, Stream stream = {});

namespace cuda {
void three_weights(View<const float, 2> distances_sq, const InverseDistance& options, View<float, 2> weights,
                   Stream stream);
void three_weights_backward(View<const float, 2> distances_sq, const InverseDistance& options,
                            View<const float, 2> dL_dweights, View<float, 2> dL_ddistances_sq, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
