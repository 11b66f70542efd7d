#pragma once
// Surfaces of grids of values by marching cubes [Lorensen and Cline 1987] with a table that leaves no holes
// (marching_cubes_table.h).

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// Values at the corners of cells: value (x, y, z) at low + step * (x, y, z), x fastest.
struct ScalarGrid {
    std::array<int64_t, 3> size = {};  // corners along x, y, z
    std::array<double, 3> low = {};
    double step = 1;
    std::vector<float> values;

    float& at(int64_t x, int64_t y, int64_t z) { return values[static_cast<size_t>((z * size[1] + y) * size[0] + x)]; }
    float at(int64_t x, int64_t y, int64_t z) const {
        return values[static_cast<size_t>((z * size[1] + y) * size[0] + x)];
    }
};

/// The same where values are known near a surface only. Block (x, y, z) holds the corners 4 x .. 4 x + 3, and so on, x
/// fastest. A cell counts when the blocks of all its corners are there.
struct SparseGrid {
    static constexpr int kSide = 4, kCorners = kSide * kSide * kSide;  // of a block

    std::array<double, 3> low = {};  // of corner (0, 0, 0)
    double step = 1;
    std::vector<std::array<int32_t, 3>> blocks;  // each once, in any order, within +-2^29
    std::vector<float> values;                   // [blocks, kCorners]
};

/// The surface where the grid passes `level`, normals towards lower values. A value equal to the level is above it.
///
/// By indices the surface is closed, oriented and 2-manifold except where it leaves the grid: every edge inside has two
/// triangles that run along it in opposite directions, every vertex one fan. On a face of a cell with two diagonal
/// corners above, what is above is connected. Vertices lie on the edges of cells, one where the edge is crossed, at
/// least a thousandth of the edge away from its ends: values at the level make small triangles, not empty ones. No
/// vertex is without a triangle but at the border of the grid.
///
/// Positions are about an origin as choose_origin gives it for the grid's bounds: 0 unless coordinates are large for
/// their extent. Throws Error{bad_argument} for sizes that do not fit, non-finite values, level, low or step, a step
/// not above 0, a block listed twice or more than 2^31 - 1 vertices or triangles. Deterministic, threads do not matter.
/// O(corners).
Mesh marching_cubes(const ScalarGrid& grid, float level);
Mesh marching_cubes(const SparseGrid& grid, float level);

}  // namespace stipple::geometry
