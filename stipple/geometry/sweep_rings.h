#pragma once
// The rings of a sweep: what the lasers of a spinning LiDAR drew, each in one turn.

#include <optional>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/core/vec3.h"

namespace stipple::geometry {

struct SweepRings {
    Vec3d sensor;                             // in the world
    std::vector<std::vector<int32_t>> rings;  // from the highest to the lowest, points of each by their azimuth
    double step = 0;                          // radians from a point to the next one of its ring, median
};

/// A point as the sensor saw it.
struct SweepView {
    double azimuth = 0, elevation = 0;  // radians; azimuths from 0 to 2 pi
    double range = 0;
};
SweepView seen_from(Vec3d sensor, Vec3d point);

/// The sensor is where the file says (FileFacts::viewpoint), else at the world's origin. Rings are found by the
/// attribute `ring`; without it by the order of the points, where they go around once for each laser (KITTI); else by
/// their elevations, where these lie in bands with gaps between them that are as wide in all. Points that belong to
/// none are left out: not finite, at the sensor, or between the bands.
///
/// Nothing is returned unless the cloud is a whole sweep: nine of ten points in 8 to 512 rings of 16 points or more,
/// nine of ten above the next ring, in steps that are mostly equal and smaller than the angles between rings. So clouds
/// that were thinned, merged or moved away from their sensor are none, nor is one of more than 4 million points.
/// Deterministic. O(n log n). CPU.
std::optional<SweepRings> find_sweep_rings(const PointCloud& cloud);

}  // namespace stipple::geometry
