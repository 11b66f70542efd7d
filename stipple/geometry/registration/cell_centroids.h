#pragma once
// Centroids of the occupied cells of a grid without the grid: what voxel_grid() and voxel_centroids() give, for callers
// that need neither the order of the cells nor which points are in them. Internal to icp().

#include "stipple/core/array.h"

namespace stipple::geometry {

/// The mean of the finite points of each cell of edge `size`, cells as in ops::voxel_grid with its origin at 0, in the
/// order in which the points come to them. Sums are in float64, chunks of points by chunks, so the same bits on any
/// number of threads. Throws as ops::voxel_grid does. O(n), by hashing. CPU.
Array<float, 2> cell_centroids(View<const float, 2> points, float size);

}  // namespace stipple::geometry
