#pragma once
// One row of three_weights, for CPU and CUDA.

#include <cmath>

#include "stipple/core/numeric.h"
#include "stipple/ops/three_interpolate.h"

namespace stipple::ops {

/// 1 / (d^power + epsilon), 0 for a missing neighbour.
STIPPLE_HD double inverse_distance(float distance_sq, const InverseDistance& options) {
    if (!(distance_sq < INFINITY)) return 0;
    const double d = distance_sq;
    return 1 / ((options.power == InverseDistance::Power::squared ? d : ::sqrt(d)) + options.epsilon);
}

STIPPLE_HD void three_weights_row(const float* distances_sq, int64_t k, const InverseDistance& options,
                                  float* weights) {
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += inverse_distance(distances_sq[j], options);
    for (int64_t j = 0; j < k; ++j)
        weights[j] = sum > 0 ? static_cast<float>(inverse_distance(distances_sq[j], options) / sum) : 0.0f;
}

STIPPLE_HD void three_weights_backward_row(const float* distances_sq, int64_t k, const InverseDistance& options,
                                           const float* dL_dweights, float* dL_ddistances_sq) {
    double sum = 0, mean = 0;  // mean gradient under the weights
    for (int64_t j = 0; j < k; ++j) {
        const double u = inverse_distance(distances_sq[j], options);
        sum += u;
        if (u > 0) mean += u * dL_dweights[j];
    }
    mean /= sum > 0 ? sum : 1;
    for (int64_t j = 0; j < k; ++j) {
        const double u = inverse_distance(distances_sq[j], options);
        double du = -u * u;  // over d^power
        if (options.power == InverseDistance::Power::plain) {
            const double d = ::sqrt(static_cast<double>(distances_sq[j]));
            du = d > 0 ? du / (2 * d) : 0;
        }
        dL_ddistances_sq[j] = u > 0 ? static_cast<float>((dL_dweights[j] - mean) / sum * du) : 0.0f;
    }
}

}  // namespace stipple::ops
