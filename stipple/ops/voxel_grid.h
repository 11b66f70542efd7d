#pragma once
// The voxel grid: points grouped by the cube they lie in, and what is made of each group.
//
//   VoxelGrid grid = voxel_grid(points, 0.05f);
//   Array<float, 2> centroids({grid.cells.rows(), 3}, points.device());
//   voxel_centroids(grid, points.rows, centroids.view());

#include "stipple/core/array.h"
#include "stipple/ops/clouds.h"

namespace stipple::ops {

/// The occupied cells of a batch of clouds. Cells of a cloud are sorted by (z, y, x), x fastest; arrays are on the
/// device of the points.
struct VoxelGrid {
    Batch points;                       // of the clouds that were given
    Batch cells;                        // as many clouds, a row for each occupied cell
    Array<int32_t, 1> cell_of_point;    // [points] the cell in the point's cloud, -1 for a non-finite point
    Array<int32_t, 1> order;            // [finite points] indices in their cloud, by cell, ascending within a cell
    Array<int64_t, 1> offsets;          // [cells + 1] cell i holds order[offsets[i]] to order[offsets[i + 1] - 1]
    Array<int32_t, 2> coordinates;      // [cells, 3] the cell's x, y and z
    float size = 0;                     // edge of a cell
    std::array<double, 3> origin = {};  // corner of cell (0, 0, 0)

    Device device() const { return cell_of_point.device(); }
};

/// Groups points by cells of edge `size`: the cell of p is floor((p - origin) / size) on each axis, the difference
/// rounded to double and the quotient not at all.
///
/// points  [n, 3], any batch, CPU or CUDA. Points with a non-finite coordinate are in no cell
/// size    above 0 and finite
/// origin  a corner that cells share; by default cells begin at the multiples of size
///
/// Deterministic, and the same on CPU and CUDA. Throws Error{bad_argument} for a cell beyond +-2^28 on an axis (the
/// size is far too small for the coordinates) and for more than 2^62 cells in the boxes around the clouds.
/// O(n) time (a radix sort over as many bits as the boxes have cells), 24 to 40 bytes of scratch a point. On CUDA it
/// waits twice for the stream: for the clouds' boxes and for the number of cells.
VoxelGrid voxel_grid(const Clouds& points, float size, std::array<double, 3> origin = {}, Stream stream = {});

/// The mean of the rows of each cell: of the points themselves, or of attributes.
///
/// rows  [points, c] float32, the numbers of a row adjacent
/// out   [cells, c]
///
/// Sums are in double: 256 points at a time by ascending index, then these sums in order. The same bits on any number
/// of threads and on CUDA.
void voxel_centroids(const VoxelGrid& grid, View<const float, 2> rows, View<float, 2> out, Stream stream = {});

/// The point of each cell that is nearest to the middle of the cell, by distances in double; ties to the lowest index.
///
/// points  [points, 3] those of the grid
/// out     [cells] int32, indices in the cloud
void voxel_representatives(const VoxelGrid& grid, View<const float, 2> points, View<int32_t, 1> out,
                           Stream stream = {});

/// The same for any place of each cell, say its centroid. targets [cells, 3].
void voxel_representatives(const VoxelGrid& grid, View<const float, 2> points, View<const float, 2> targets,
                           View<int32_t, 1> out, Stream stream = {});

}  // namespace stipple::ops
