#pragma once
// Meshes and voxels. CPU. Cells as in ops/voxel_grid.h: cell (x, y, z) begins at origin + size * (x, y, z).

#include <array>

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// The cells that the surface of a mesh passes through, [k, 3] x, y, z, each once, sorted by (z, y, x).
///
/// A cell is found when a face and the closed cube have a point in common and the cell lies between those of the face's
/// lowest and highest coordinates: the cell of any point of the surface is found, and a face that lies between two
/// layers of cells belongs to the upper one. Faces without area count as the segments and points they are.
/// float64, conservative by 1e-9 of a cell. Threads do not matter. Throws Error{bad_argument} as
/// require_mesh does, for a mesh on another device, a size that is not above 0 and finite, and cells beyond +-2^28.
/// O(m + cells), faces as wide as many cells included.
Array<int32_t, 2> voxelize_mesh(const MeshView& mesh, double size, const std::array<double, 3>& origin = {});

/// Of voxels [n, 3], each once, those without one of their six neighbours: indices, ascending. O(n log n).
Array<int32_t, 1> boundary_voxels(View<const int32_t, 2> voxels);

/// A cube for every voxel [n, 3], smaller than the cell by the fraction `gap` in [0, 1): vertices 8 i to 8 i + 7 and
/// faces 12 i to 12 i + 11, closed and outwards, not joined with its neighbours'.
Mesh voxel_mesh(View<const int32_t, 2> voxels, double size, const std::array<double, 3>& origin = {}, double gap = 0);

/// Fills the connected region of equal values (six neighbours) that holds `start` (indices into the grid) with `value`;
/// how many cells that were. 0 when they had the value already. O(cells).
int64_t flood_fill(View<int32_t, 3> grid, const std::array<int64_t, 3>& start, int32_t value);

}  // namespace stipple::geometry
