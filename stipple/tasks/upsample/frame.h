#pragma once
// Some points of a cloud, in the coordinates of a network.

#include <algorithm>
#include <span>

#include "stipple/core/array.h"
#include "stipple/core/vec3.h"

namespace stipple::tasks {

/// Where coordinates of a network lie: x = (p - centre) / unit.
struct Frame {
    double centre[3] = {};
    double unit = 1;

    void into(const float* p, float* x) const {
        for (int c = 0; c < 3; ++c) x[c] = static_cast<float>((p[c] - centre[c]) / unit);
    }
    void out_of(const float* x, float* p) const {
        for (int c = 0; c < 3; ++c) p[c] = static_cast<float>(x[c] * unit + centre[c]);
    }
};

inline Vec3f row(View<const float, 2> points, int64_t i) {
    const float* at = points.data() + 3 * i;
    return {at[0], at[1], at[2]};
}

inline Array<float, 2> rows_of(View<const float, 2> cloud, std::span<const int32_t> points) {
    Array<float, 2> rows({static_cast<int64_t>(points.size()), 3});
    for (size_t i = 0; i < points.size(); ++i)
        std::copy_n(cloud.data() + 3 * int64_t{points[i]}, 3, rows.data() + 3 * i);
    return rows;
}

}  // namespace stipple::tasks
