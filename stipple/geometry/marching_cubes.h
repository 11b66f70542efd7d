#pragma once

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

/// The surface where the grid passes `level`, normals towards lower values. Topologically consistent: closed and
/// 2-manifold except where it leaves the grid. Vertices are shared. Non-finite values throw Error{bad_argument}.
/// Deterministic, threads do not matter.
Mesh marching_cubes(const ScalarGrid& grid, float level);

}  // namespace stipple::geometry
