#pragma once
// Transport plans and matchings are judged by this cost of moving a point onto another, in double.

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/ops/distance_norm.h"

namespace stipple::test {

inline double pair_cost(const float* p, const float* q, ops::DistanceNorm norm) {
    double sq = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const double d = static_cast<double>(p[axis]) - q[axis];
        sq += d * d;
    }
    return norm == ops::DistanceNorm::squared ? sq : std::sqrt(sq);
}

/// The cost between point i of cloud `a` and point j of cloud `b`.
inline double pair_cost(const Array<float, 2>& a, int64_t i, const Array<float, 2>& b, int64_t j,
                        ops::DistanceNorm norm) {
    return pair_cost(a.data() + 3 * i, b.data() + 3 * j, norm);
}

}  // namespace stipple::test
