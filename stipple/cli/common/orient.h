#pragma once
// Which way normals point where nobody says it.

#include "stipple/core/point_cloud.h"
#include "stipple/core/view.h"

namespace stipple::cli {

/// Turns normals [n, 3] of a cloud, both on the CPU: towards the sensor where the file knows its place, and says
/// "viewpoint"; else so that neighbours agree, outwards, and says "mst".
std::string orient_normals(const PointCloud& cloud, View<float, 2> normals, int k = 16);

}  // namespace stipple::cli
