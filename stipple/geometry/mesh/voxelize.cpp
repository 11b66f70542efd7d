#include "stipple/geometry/voxelize.h"

#include <algorithm>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/mesh/triangle_voxels.h"
#include "stipple/geometry/primitives.h"

namespace stipple::geometry {
namespace {

struct Cell {
    int32_t x, y, z;
    bool operator==(const Cell&) const = default;
    bool operator<(const Cell& o) const { return z != o.z ? z < o.z : y != o.y ? y < o.y : x < o.x; }
};

constexpr double kMostCells = 0x1p28;

void sort_unique(std::vector<Cell>& cells) {
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
}

void require_voxels(const char* who, const View<const int32_t, 2>& voxels) {
    STIPPLE_REQUIRE(voxels.size(1) == 3 || voxels.size(0) == 0, "{}: voxels must be [n, 3], got {}", who,
                    shape_text(voxels.shape().data(), 2));
    STIPPLE_REQUIRE(voxels.device() == Device{}, "{}: works on the CPU", who);
}

void require_cell_size(const char* who, double size) {
    STIPPLE_REQUIRE(size > 0 && std::isfinite(size), "{}: cells of size {}", who, size);
}

}  // namespace

Array<int32_t, 2> voxelize_mesh(const MeshView& mesh, double size, const std::array<double, 3>& origin) {
    require_cpu_mesh("voxelize_mesh", mesh);
    require_cell_size("voxelize_mesh", size);
    constexpr int64_t kFaces = 1024;
    std::vector<std::vector<Cell>> pieces(static_cast<size_t>((mesh.faces() + kFaces - 1) / kFaces));
    parallel_for(mesh.faces(), kFaces, [&](int64_t begin, int64_t end) {
        std::vector<Cell>& found = pieces[begin / kFaces];
        for (int64_t f = begin; f < end; ++f) {
            TrianglePlaces p;  // in cells
            std::array<int32_t, 3> low, high;
            for (int axis = 0; axis < 3; ++axis) {
                for (int c = 0; c < 3; ++c)
                    p[c][axis] = (mesh.vertices(mesh.triangles(f, c), axis) - origin[axis]) / size;
                const auto [least, most] = std::minmax({p[0][axis], p[1][axis], p[2][axis]});
                STIPPLE_REQUIRE(least >= -kMostCells && most <= kMostCells,
                                "voxelize_mesh: face {} is more than 2^28 cells of size {} from the origin", f, size);
                low[axis] = static_cast<int32_t>(std::floor(least)),
                high[axis] = static_cast<int32_t>(std::floor(most));
            }
            visit_touched_voxels(p, 0, [&](int32_t x, int32_t y, int32_t z) {
                if (x >= low[0] && x <= high[0] && y >= low[1] && y <= high[1] && z >= low[2] && z <= high[2])
                    found.push_back({x, y, z});
            });
        }
        sort_unique(found);
    });
    std::vector<Cell> all;
    for (std::vector<Cell>& piece : pieces) {
        all.insert(all.end(), piece.begin(), piece.end());
        piece = {};
    }
    sort_unique(all);
    Array<int32_t, 2> voxels({static_cast<int64_t>(all.size()), 3});
    for (size_t i = 0; i < all.size(); ++i) {
        const int32_t at[3] = {all[i].x, all[i].y, all[i].z};
        std::copy_n(at, 3, voxels.data() + 3 * i);
    }
    return voxels;
}

Array<int32_t, 1> boundary_voxels(View<const int32_t, 2> voxels) {
    require_voxels("boundary_voxels", voxels);
    const int64_t n = voxels.size(0);
    std::vector<Cell> sorted(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) sorted[i] = {voxels(i, 0), voxels(i, 1), voxels(i, 2)};
    std::sort(sorted.begin(), sorted.end());
    std::vector<int32_t> boundary;
    for (int64_t i = 0; i < n; ++i) {
        const auto is_there = [&](int64_t dx, int64_t dy, int64_t dz) {
            const int64_t at[3] = {voxels(i, 0) + dx, voxels(i, 1) + dy, voxels(i, 2) + dz};
            for (const int64_t c : at)
                if (c < INT32_MIN || c > INT32_MAX) return false;
            return std::binary_search(
                sorted.begin(), sorted.end(),
                Cell{static_cast<int32_t>(at[0]), static_cast<int32_t>(at[1]), static_cast<int32_t>(at[2])});
        };
        if (!(is_there(-1, 0, 0) && is_there(1, 0, 0) && is_there(0, -1, 0) && is_there(0, 1, 0) &&
              is_there(0, 0, -1) && is_there(0, 0, 1)))
            boundary.push_back(static_cast<int32_t>(i));
    }
    Array<int32_t, 1> indices({static_cast<int64_t>(boundary.size())});
    std::copy(boundary.begin(), boundary.end(), indices.data());
    return indices;
}

Mesh voxel_mesh(View<const int32_t, 2> voxels, double size, const std::array<double, 3>& origin, double gap) {
    require_voxels("voxel_mesh", voxels);
    require_cell_size("voxel_mesh", size);
    STIPPLE_REQUIRE(gap >= 0 && gap < 1, "voxel_mesh: gap {}, not 0 to below 1", gap);
    const int64_t n = voxels.size(0);
    STIPPLE_REQUIRE(n <= INT32_MAX / 12, "voxel_mesh: {} voxels, at most {}", n, INT32_MAX / 12);
    const Mesh cube = cube_mesh(1, 1, 1);
    Mesh mesh;
    mesh.vertices = PointCloud(8 * n);
    mesh.triangles = Array<int32_t, 2>({12 * n, 3});
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < 24; ++k) {
            const int64_t axis = k % 3;
            const double at = voxels(i, axis) + 0.5 + (1 - gap) * cube.vertices.positions.data()[k];
            mesh.vertices.positions.data()[24 * i + k] = static_cast<float>(origin[axis] + size * at);
        }
        for (int64_t k = 0; k < 36; ++k)
            mesh.triangles.data()[36 * i + k] = static_cast<int32_t>(8 * i) + cube.triangles.data()[k];
    }
    return mesh;
}

int64_t flood_fill(View<int32_t, 3> grid, const std::array<int64_t, 3>& start, int32_t value) {
    STIPPLE_REQUIRE(grid.device() == Device{}, "flood_fill: works on the CPU");
    for (int axis = 0; axis < 3; ++axis)
        STIPPLE_REQUIRE(start[axis] >= 0 && start[axis] < grid.size(axis), "flood_fill: start {} of a grid of {}",
                        shape_text(start.data(), 3), shape_text(grid.shape().data(), 3));
    const int32_t old = grid(start[0], start[1], start[2]);
    if (old == value) return 0;
    std::vector<std::array<int64_t, 3>> queue = {start};
    grid(start[0], start[1], start[2]) = value;
    int64_t filled = 0;
    while (!queue.empty()) {
        const std::array<int64_t, 3> at = queue.back();
        queue.pop_back();
        ++filled;
        for (int axis = 0; axis < 3; ++axis) {
            for (const int64_t step : {-1, 1}) {
                std::array<int64_t, 3> next = at;
                next[axis] += step;
                if (next[axis] < 0 || next[axis] >= grid.size(axis)) continue;
                int32_t& cell = grid(next[0], next[1], next[2]);
                if (cell != old) continue;
                cell = value;
                queue.push_back(next);
            }
        }
    }
    return filled;
}

}  // namespace stipple::geometry
