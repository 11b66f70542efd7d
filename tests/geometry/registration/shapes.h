#pragma once
// Clouds for tests of registration in any pose.

#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/geometry/rigid_transform.h"

namespace stipple::test {

/// Points on a lumpy body without symmetry, about 2 across.
inline PointCloud lumpy_body(int64_t n, uint64_t seed, double noise = 0) {
    PointCloud cloud(n);
    const Rng rng(seed);
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(8 * i);
        double v[3] = {rng.normal(at), rng.normal(at + 1), rng.normal(at + 2)};
        const double length = std::hypot(v[0], v[1], v[2]);
        for (double& number : v) number /= length;
        constexpr double kLumps[6][5] = {{1, 0.2, 0.1, 0.5, 8},    {-0.3, 1, 0.2, 0.4, 14},
                                         {0.2, -0.5, 1, 0.6, 6},   {-1, -0.4, 0.3, 0.3, 20},
                                         {0.1, 0.6, -1, 0.45, 10}, {-0.6, 0.7, 0.9, 0.25, 25}};
        double radius = 0.6;
        for (const auto& lump : kLumps) {
            const double size = std::hypot(lump[0], lump[1], lump[2]);
            const double cosine = (v[0] * lump[0] + v[1] * lump[1] + v[2] * lump[2]) / size;
            radius += lump[3] * std::exp(lump[4] * (cosine - 1));
        }
        for (int axis = 0; axis < 3; ++axis)
            cloud.positions.data()[3 * i + axis] =
                static_cast<float>(radius *
                                       (axis == 0   ? 1.3
                                        : axis == 1 ? 1.0
                                                    : 0.8) *
                                       v[axis] +
                                   noise * rng.normal(at + 3 + static_cast<uint64_t>(axis)));
    }
    return cloud;
}

/// A turn by any angle about any axis, and a shift of up to `reach` along each axis.
inline geometry::RigidTransform any_pose(uint64_t seed, double reach) {
    const Rng rng(seed, 5);
    geometry::RigidTransform pose =
        geometry::from_quaternion({rng.normal(0), rng.normal(1), rng.normal(2), rng.normal(3)});
    for (int axis = 0; axis < 3; ++axis)
        pose.translation[axis] = reach * (2 * rng.uniform(static_cast<uint64_t>(20 + axis)) - 1);
    return pose;
}

/// The points on one side of a plane through the origin, by their place along `direction` from `least`.
inline PointCloud part_of(const PointCloud& cloud, const geometry::Vector3& direction, double least) {
    std::vector<int32_t> kept;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        double along = 0;
        for (int axis = 0; axis < 3; ++axis) along += direction[axis] * cloud.world(i, axis);
        if (along >= least) kept.push_back(static_cast<int32_t>(i));
    }
    return select(cloud, View<const int32_t, 1>(kept.data(), {static_cast<int64_t>(kept.size())}));
}

}  // namespace stipple::test
