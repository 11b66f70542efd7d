#pragma once
// Both scans of a pair at once.

#include "stipple/core/parallel.h"
#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// call(0, a) and call(1, b): side by side where both are small, so that each on one thread is sooner done than both
/// one after the other on all threads.
template <class Call>
void each_of(const PointCloud& a, const PointCloud& b, const Call& call) {
    constexpr int64_t kSmall = int64_t{1} << 18;  // points
    if (std::max(a.size(), b.size()) > kSmall) {
        call(0, a);
        call(1, b);
        return;
    }
    parallel_for(2, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) call(i, i == 0 ? a : b);
    });
}

}  // namespace stipple::geometry
