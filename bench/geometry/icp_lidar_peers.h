#pragma once
// Registration of a LiDAR pair in other libraries, each in a file of its own so that its headers meet nobody else's.

#include <array>
#include <cstdint>
#include <functional>

namespace peer {

/// Points [n, 3] and [m, 3].
struct LidarClouds {
    const float* source = nullptr;
    int64_t n = 0;
    const float* target = nullptr;
    int64_t m = 0;
};

using Pose = std::array<double, 16>;  // 4 x 4, row by row, source to target
/// From a start to a pose, thinning, trees and normals included, on one thread. Prepared outside the clock: the clouds
/// in the library's own type.
using LidarRun = std::function<Pose(const Pose& start)>;

LidarRun small_gicp_run(const LidarClouds& clouds, bool plane);

}  // namespace peer
