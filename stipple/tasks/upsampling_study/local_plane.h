#pragma once
// What the ruler and the ring test judge points by: their nearest neighbours, and the plane of some points.

#include <span>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/core/vec3.h"

namespace stipple::tasks::study {

/// Of each point of a cloud the k nearest among another one, and their squared distances.
struct Nearest {
    Array<int32_t, 2> indices;  // [n, k]
    Array<float, 2> squares;    // [n, k]
};
Nearest nearest(const PointCloud& of, const PointCloud& among, int64_t k);

/// Local spacings of a scan, of each of its points: 1 / sqrt(density), which is 0.443 times the distance to the 16th
/// neighbour on a surface. The scan has 17 points or more.
std::vector<double> scan_spacings(const PointCloud& scan);
/// Farther than so many spacings from its nearest point a scan has no surface.
inline constexpr double kInventedFrom = 1.5;

/// The plane through the centre of points with the least squared distances from it.
struct LocalPlane {
    Vec3d centre, normal;
    double rms = 0;  // of the points' distances

    double distance(Vec3d place) const { return std::abs(dot(normal, place - centre)); }
};
LocalPlane fit_plane(std::span<const Vec3d> points);

inline Vec3d point_of(const PointCloud& cloud, int64_t i) {
    return to_vec3(cloud.positions.data() + 3 * i);
}

}  // namespace stipple::tasks::study
