#pragma once
// The gradient of one nearest pair, the same bits on CPU and CUDA.

#include <cmath>

#include "stipple/core/numeric.h"
#include "stipple/ops/chamfer.h"

namespace stipple::ops {

/// dL/dmean times dmean/ddistance: what every pair of a cloud is multiplied by.
STIPPLE_HD float chamfer_coefficient(float dL_dmean, int32_t used, DistanceNorm norm) {
    if (used <= 0) return 0.0f;
    return static_cast<float>((norm == DistanceNorm::squared ? 2.0 : 1.0) * dL_dmean / used);
}

/// dL/dpoint of a pair (point, nearest); the nearest point receives its negative.
STIPPLE_HD void chamfer_term(const float* point, const float* nearest, float coefficient, DistanceNorm norm,
                             float* term) {
    const float dx = point[0] - nearest[0], dy = point[1] - nearest[1], dz = point[2] - nearest[2];
    if (norm == DistanceNorm::squared) {
        term[0] = coefficient * dx;
        term[1] = coefficient * dy;
        term[2] = coefficient * dz;
        return;
    }
    // In double nothing overflows or vanishes on the way to the root, at any scale of the cloud.
    const double x = dx, y = dy, z = dz;
#ifdef __CUDA_ARCH__
    const double sq = __dadd_rn(__dadd_rn(__dmul_rn(x, x), __dmul_rn(y, y)), __dmul_rn(z, z));
#else
    const double sq = (x * x + y * y) + z * z;
#endif
    const double factor = sq > 0 ? coefficient / std::sqrt(sq) : (sq == 0 ? 0.0 : sq);  // NaN stays NaN
    term[0] = static_cast<float>(factor * x);
    term[1] = static_cast<float>(factor * y);
    term[2] = static_cast<float>(factor * z);
}

}  // namespace stipple::ops
