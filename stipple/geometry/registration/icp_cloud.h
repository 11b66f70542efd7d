#pragma once
// A cloud as a level of icp() sees it: thinned, indexed, with normals and size. Internal to icp().

#include "stipple/core/point_cloud.h"
#include "stipple/geometry/registration/icp_pairs.h"

namespace stipple::geometry {

/// Mean and RMS distance from it of the finite points.
struct Extent {
    Vector3 mean = {};
    double radius = 0;
};
Extent extent_of(View<const float, 2> points);

struct IcpCloud {
    PairTarget points;
    std::vector<std::array<float, 3>> normals;  // by slot, of unit length or zero; empty where not wanted
    Extent extent;
};

/// The centroids of cells of edge `voxel` (0: all points). Normals are the cloud's own, in cells their mean, or
/// estimated from `neighbours` points; 0: none are wanted.
std::shared_ptr<const IcpCloud> icp_cloud(const PointCloud& cloud, double voxel, int neighbours);

/// The median distance from a point to the nearest other one, by a thousand of the points; 0 for fewer than two.
double spacing_of(const PairTarget& points);

/// Every stride-th point, from the first on: spread as evenly as the tree orders them.
ops::cpu::Leaves every(const ops::cpu::Leaves& all, int64_t stride);

}  // namespace stipple::geometry
