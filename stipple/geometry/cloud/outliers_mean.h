#pragma once

#include <cmath>

#include "stipple/core/numeric.h"

namespace stipple::geometry {

/// The mean of the distances in a row of ops::knn, which ends with +infinity where neighbours are missing; NaN for a
/// row without any, that of a non-finite point. Correctly rounded steps in order: the same bits on CPU and CUDA.
STIPPLE_HD double mean_distance(const float* distances_sq, int64_t k) {
    double sum = 0;
    int64_t found = 0;
    for (; found < k && distances_sq[found] < INFINITY; ++found)
        sum = add_rounded(sum, ::sqrt(static_cast<double>(distances_sq[found])));
    return found > 0 ? sum / static_cast<double>(found) : static_cast<double>(NAN);
}

}  // namespace stipple::geometry
