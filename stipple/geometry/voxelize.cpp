#include "stipple/geometry/voxelize.h"

#include <algorithm>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh_vectors.h"
#include "stipple/geometry/primitives.h"

namespace stipple::geometry {
namespace {

struct Cell {
    int32_t x, y, z;
    bool operator==(const Cell&) const = default;
    bool operator<(const Cell& o) const { return z != o.z ? z < o.z : y != o.y ? y < o.y : x < o.x; }
};

constexpr double kMostCells = 0x1p28;

/// A face in units of cells.
class Face {
public:
    Face(const Vec3& a, const Vec3& b, const Vec3& c)
        : corner_{a, b, c}, edge_{b - a, c - b, a - c}, normal_(cross(edge_[0], edge_[1])) {
        for (const Vec3& p : corner_) {
            const double at[3] = {p.x, p.y, p.z};
            for (int axis = 0; axis < 3; ++axis) {
                low_[axis] = std::min(low_[axis], static_cast<int64_t>(std::floor(at[axis])));
                high_[axis] = std::max(high_[axis], static_cast<int64_t>(std::floor(at[axis])));
            }
        }
        const double n[3] = {std::abs(normal_.x), std::abs(normal_.y), std::abs(normal_.z)};
        steep_ = static_cast<int>(std::max_element(n, n + 3) - n);
    }

    /// Columns along the steepest axis, and of each the few cells that the plane of the face comes near.
    void cells(std::vector<Cell>& found) const {
        const int w = steep_, u = (w + 1) % 3, v = (w + 2) % 3;
        const double n[3] = {normal_.x, normal_.y, normal_.z};
        const double offset = dot(normal_, corner_[0]);
        int64_t at[3];
        for (at[u] = low_[u]; at[u] <= high_[u]; ++at[u]) {
            for (at[v] = low_[v]; at[v] <= high_[v]; ++at[v]) {
                int64_t first = low_[w], last = high_[w];
                if (n[w] != 0) {
                    const auto middle = [&](int axis) { return static_cast<double>(at[axis]) + 0.5; };
                    const double height = (offset - n[u] * middle(u) - n[v] * middle(v)) / n[w];
                    const double reach = 0.5 * (std::abs(n[u]) + std::abs(n[v])) / std::abs(n[w]) + 1e-6;  // at most 1
                    first = std::max(first, static_cast<int64_t>(std::floor(height - reach)));
                    last = std::min(last, static_cast<int64_t>(std::floor(height + reach)));
                }
                for (at[w] = first; at[w] <= last; ++at[w])
                    if (touches(at))
                        found.push_back(
                            {static_cast<int32_t>(at[0]), static_cast<int32_t>(at[1]), static_cast<int32_t>(at[2])});
            }
        }
    }

private:
    /// No axis separates the face from the cube about the cell's middle: the cube's three (those of `low` and `high`,
    /// by closed intervals), the normal, and the nine products of edges.
    bool touches(const int64_t* at) const {
        const Vec3 middle = {static_cast<double>(at[0]) + 0.5, static_cast<double>(at[1]) + 0.5,
                             static_cast<double>(at[2]) + 0.5};
        const Vec3 p[3] = {corner_[0] - middle, corner_[1] - middle, corner_[2] - middle};
        const auto separates = [&](const Vec3& axis) {
            const double d[3] = {dot(axis, p[0]), dot(axis, p[1]), dot(axis, p[2])};
            const double reach = 0.5 * (std::abs(axis.x) + std::abs(axis.y) + std::abs(axis.z));
            return std::min({d[0], d[1], d[2]}) > reach || std::max({d[0], d[1], d[2]}) < -reach;
        };
        if (separates({1, 0, 0}) || separates({0, 1, 0}) || separates({0, 0, 1}) || separates(normal_)) return false;
        for (const Vec3& e : edge_)
            if (separates({0, -e.z, e.y}) || separates({e.z, 0, -e.x}) || separates({-e.y, e.x, 0})) return false;
        return true;
    }

    Vec3 corner_[3], edge_[3], normal_;
    int64_t low_[3] = {INT64_MAX, INT64_MAX, INT64_MAX}, high_[3] = {INT64_MIN, INT64_MIN, INT64_MIN};
    int steep_ = 0;
};

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
            Vec3 p[3];
            for (int c = 0; c < 3; ++c) {
                const Vec3 at = corner_of(mesh, f, c);
                p[c] = {(at.x - origin[0]) / size, (at.y - origin[1]) / size, (at.z - origin[2]) / size};
                STIPPLE_REQUIRE(std::max({std::abs(p[c].x), std::abs(p[c].y), std::abs(p[c].z)}) <= kMostCells,
                                "voxelize_mesh: face {} is more than 2^28 cells of size {} from the origin", f, size);
            }
            Face(p[0], p[1], p[2]).cells(found);
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
