#include "stipple/geometry/marching_cubes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/geometry/manifold.h"

namespace stipple::test {
namespace {

using geometry::marching_cubes;
using geometry::ScalarGrid;
using geometry::SparseGrid;

ScalarGrid make_grid(int64_t x, int64_t y, int64_t z) {
    ScalarGrid grid;
    grid.size = {x, y, z};
    grid.values.assign(static_cast<size_t>(x * y * z), 0);
    return grid;
}

bool at_border(const ScalarGrid& grid, int64_t x, int64_t y, int64_t z) {
    return x == 0 || y == 0 || z == 0 || x == grid.size[0] - 1 || y == grid.size[1] - 1 || z == grid.size[2] - 1;
}

ScalarGrid sphere_grid(int n, double radius) {
    ScalarGrid grid = make_grid(n, n, n);
    grid.low = {-1, -1, -1};
    grid.step = 2.0 / (n - 1);
    for (int z = 0; z < n; ++z) {
        for (int y = 0; y < n; ++y) {
            for (int x = 0; x < n; ++x)
                grid.at(x, y, z) =
                    static_cast<float>(radius - std::hypot(-1 + x * grid.step, -1 + y * grid.step, -1 + z * grid.step));
        }
    }
    return grid;
}

SparseGrid sparse_of(const ScalarGrid& grid) {
    SparseGrid sparse;
    sparse.low = grid.low;
    sparse.step = grid.step;
    for (int32_t z = 0; z < grid.size[2]; z += 4) {
        for (int32_t y = 0; y < grid.size[1]; y += 4) {
            for (int32_t x = 0; x < grid.size[0]; x += 4) {
                sparse.blocks.push_back({x / 4, y / 4, z / 4});
                for (int i = 0; i < SparseGrid::kCorners; ++i)
                    sparse.values.push_back(grid.at(x + i % 4, y + i / 4 % 4, z + i / 16));
            }
        }
    }
    return sparse;
}

std::string difference_of(const Mesh& a, const Mesh& b) {
    if (a.vertices.size() != b.vertices.size() || a.faces() != b.faces()) return "sizes";
    if (a.faces() == 0) return "";
    if (std::memcmp(a.vertices.positions.data(), b.vertices.positions.data(), 12 * a.vertices.size()))
        return "vertices";
    return std::memcmp(a.triangles.data(), b.triangles.data(), 12 * a.faces()) ? "triangles" : "";
}

double area_of(const Mesh& mesh) {
    double area = 0;
    for (int64_t face = 0; face < mesh.faces(); ++face) {
        double u[3], v[3];
        for (int i = 0; i < 3; ++i) {
            const auto at = [&](int corner) {
                return double{mesh.vertices.positions.data()[3 * mesh.triangles.data()[3 * face + corner] + i]};
            };
            u[i] = at(1) - at(0), v[i] = at(2) - at(0);
        }
        area += std::hypot(u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]) / 2;
    }
    return area;
}

TEST(GeometryMarchingCubes, OneCornerGivesATriangleThatFacesAwayFromIt) {
    ScalarGrid grid = make_grid(2, 2, 2);
    grid.at(0, 0, 0) = 4;
    const Mesh mesh = marching_cubes(grid, 1);
    ASSERT_EQ(mesh.faces(), 1);
    ASSERT_EQ(mesh.vertices.size(), 3);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(mesh.vertices.positions.data()[i], i % 4 == 0 ? 0.75f : 0.0f) << i;
    EXPECT_EQ(std::vector<int32_t>(mesh.triangles.data(), mesh.triangles.data() + 3), (std::vector<int32_t>{1, 2, 0}));
}

// Values below the level all around: whatever is inside, the surface must be closed.
TEST(GeometryMarchingCubes, RandomGridsGiveClosedManifolds) {
    const Rng rng(3);
    uint64_t draw = 0;
    int64_t faces = 0;
    for (int round = 0; round < 1600; ++round) {
        const auto side = [&] { return static_cast<int64_t>(3 + rng.below(draw++, round % 50 == 0 ? 9 : 4)); };
        const int64_t sx = side(), sy = side(), sz = side();
        ScalarGrid grid = make_grid(sx, sy, sz);
        const int kind = round % 4;
        for (int64_t z = 0; z < sz; ++z) {
            for (int64_t y = 0; y < sy; ++y) {
                for (int64_t x = 0; x < sx; ++x) {
                    if (at_border(grid, x, y, z)) {
                        grid.at(x, y, z) = -1;
                        continue;
                    }
                    const float u = rng.uniform(draw++);
                    // Numbers at random; only two values; three, one of them the level itself; many at the level.
                    grid.at(x, y, z) = kind == 0   ? u - 0.5f
                                       : kind == 1 ? (u < 0.5f ? -1.0f : 1.0f)
                                       : kind == 2 ? std::floor(3 * u) - 1
                                                   : (u < 0.8f ? 0.0f : -u);
                }
            }
        }
        const Mesh mesh = marching_cubes(grid, 0);
        ASSERT_EQ(not_closed_manifold(mesh), "") << "round " << round;
        ASSERT_GE(volume_of(mesh), 0) << "round " << round;
        faces += mesh.faces();
    }
    EXPECT_GT(faces, 40000);
}

TEST(GeometryMarchingCubes, OpenOnlyAtTheBorderOfTheGrid) {
    const Rng rng(4);
    for (int round = 0; round < 300; ++round) {
        ScalarGrid grid = make_grid(5, 6, 7);
        for (size_t i = 0; i < grid.values.size(); ++i) grid.values[i] = rng.uniform(1000 * round + i) - 0.5f;
        const Mesh mesh = marching_cubes(grid, 0);
        const auto on_border = [&](int32_t a, int32_t b) {
            const float *p = mesh.vertices.positions.data() + 3 * a, *q = mesh.vertices.positions.data() + 3 * b;
            for (int axis = 0; axis < 3; ++axis) {
                if (p[axis] == q[axis] && (p[axis] == 0 || p[axis] == static_cast<float>(grid.size[axis] - 1)))
                    return true;
            }
            return false;
        };
        ASSERT_EQ(not_manifold(mesh, on_border), "") << "round " << round;
    }
}

TEST(GeometryMarchingCubes, SpheresConverge) {
    double before = 1;
    for (int n : {17, 33, 65}) {
        const Mesh mesh = marching_cubes(sphere_grid(n, 0.7), 0);
        EXPECT_EQ(not_closed_manifold(mesh), "");
        const double volume = 4.0 / 3 * M_PI * 0.343, area = 4 * M_PI * 0.49;
        const double error = std::abs(volume_of(mesh) / volume - 1);
        EXPECT_LT(error, before / 3.5) << n;  // second order: a quarter for half the step
        EXPECT_NEAR(area_of(mesh) / area, 1, 3.0 / (n * n)) << n;
        before = error;
        int64_t edges = mesh.faces() * 3 / 2;
        EXPECT_EQ(mesh.vertices.size() - edges + mesh.faces(), 2);
    }
}

TEST(GeometryMarchingCubes, AValueAtTheLevelIsAboveAndHasArea) {
    ScalarGrid grid = make_grid(3, 3, 3);
    for (float& value : grid.values) value = -1;
    grid.at(1, 1, 1) = 0;
    const Mesh mesh = marching_cubes(grid, 0);
    EXPECT_EQ(mesh.faces(), 8);
    EXPECT_EQ(not_closed_manifold(mesh), "");
    EXPECT_GT(volume_of(mesh), 0);
    for (float& value : grid.values) value = 0;
    EXPECT_EQ(marching_cubes(grid, 0).faces(), 0);
}

TEST(GeometryMarchingCubes, SparseGridsGiveWhatDenseOnesDo) {
    const ScalarGrid grid = sphere_grid(32, 0.6);
    const Mesh dense = marching_cubes(grid, 0);
    SparseGrid all = sparse_of(grid);
    EXPECT_EQ(difference_of(dense, marching_cubes(all, 0)), "");

    SparseGrid near;  // in another order, without the blocks that the surface does not come near
    near.low = grid.low;
    near.step = grid.step;
    for (size_t i = all.blocks.size(); i-- > 0;) {
        const auto from = all.values.begin() + static_cast<int64_t>(i) * SparseGrid::kCorners;
        if (std::all_of(from, from + SparseGrid::kCorners, [](float v) { return std::abs(v) > 0.13f; })) continue;
        near.blocks.push_back(all.blocks[i]);
        near.values.insert(near.values.end(), from, from + SparseGrid::kCorners);
    }
    ASSERT_LT(near.blocks.size(), all.blocks.size() * 3 / 4);
    EXPECT_EQ(difference_of(dense, marching_cubes(near, 0)), "");

    SparseGrid shifted = near;  // block numbers may be negative
    for (auto& block : shifted.blocks) block[0] -= 5;
    shifted.low[0] += 5 * 4 * grid.step;
    const Mesh moved = marching_cubes(shifted, 0);
    EXPECT_EQ(not_closed_manifold(moved), "");
    EXPECT_NEAR(volume_of(moved), volume_of(dense), 1e-5);
}

TEST(GeometryMarchingCubes, MissingBlocksCutTheSurface) {
    SparseGrid grid = sparse_of(sphere_grid(16, 0.6));
    const Mesh whole = marching_cubes(grid, 0);
    grid.blocks.erase(grid.blocks.begin() + 5);  // (1, 1, 0)
    grid.values.erase(grid.values.begin() + 5 * SparseGrid::kCorners, grid.values.begin() + 6 * SparseGrid::kCorners);
    const Mesh cut = marching_cubes(grid, 0);
    EXPECT_LT(cut.faces(), whole.faces());
    EXPECT_EQ(not_manifold(cut, [](int32_t, int32_t) { return true; }), "");
}

TEST(GeometryMarchingCubes, LargeCoordinatesKeepTheirPrecision) {
    ScalarGrid grid = sphere_grid(17, 0.7);
    const Mesh near = marching_cubes(grid, 0);
    grid.low = {500000 - 1, 5000000 - 1, -1};
    const Mesh far = marching_cubes(grid, 0);
    ASSERT_EQ(near.vertices.size(), far.vertices.size());
    for (int64_t i = 0; i < near.vertices.size(); ++i) {
        EXPECT_NEAR(far.vertices.world(i, 0), near.vertices.world(i, 0) + 500000, 1e-6);
        EXPECT_NEAR(far.vertices.world(i, 1), near.vertices.world(i, 1) + 5000000, 1e-6);
    }
}

TEST(GeometryMarchingCubes, ThreadsDoNotMatter) {
    const ScalarGrid grid = sphere_grid(65, 0.7);
    const int before = threads();
    set_threads(1);
    const Mesh one = marching_cubes(grid, 0);
    set_threads(3);
    const Mesh three = marching_cubes(grid, 0);
    set_threads(before);
    EXPECT_EQ(difference_of(one, three), "");
}

TEST(GeometryMarchingCubes, EmptyGridsAndMistakes) {
    EXPECT_EQ(marching_cubes(ScalarGrid{}, 0).faces(), 0);
    EXPECT_EQ(marching_cubes(SparseGrid{}, 0).faces(), 0);
    EXPECT_EQ(marching_cubes(make_grid(1, 1, 1), 0).vertices.size(), 0);
    const auto message_of = [](auto&& call) -> std::string {
        try {
            call();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_argument);
            return error.message();
        }
        return "nothing thrown";
    };
    ScalarGrid grid = make_grid(2, 2, 2);
    EXPECT_EQ(message_of([&] { marching_cubes(grid, NAN); }), "marching_cubes: the level is nan");
    grid.values[3] = INFINITY;
    EXPECT_EQ(message_of([&] { marching_cubes(grid, 0); }), "marching_cubes: a value is not finite");
    grid.values.pop_back();
    EXPECT_EQ(message_of([&] { marching_cubes(grid, 0); }), "marching_cubes: 7 values for a grid of [2, 2, 2]");
    grid = make_grid(2, 2, 2);
    grid.step = 0;
    EXPECT_EQ(message_of([&] { marching_cubes(grid, 0); }), "marching_cubes: the step must be above 0, got 0");
    grid.step = 1;
    grid.low[1] = NAN;
    EXPECT_EQ(message_of([&] { marching_cubes(grid, 0); }), "marching_cubes: the low corner is not finite");
    grid.size[0] = -1;
    EXPECT_EQ(message_of([&] { marching_cubes(grid, 0); }), "marching_cubes: a grid of [-1, 2, 2]");
    SparseGrid sparse;
    sparse.blocks = {{1, 2, 3}, {0, 0, 0}, {1, 2, 3}};
    EXPECT_EQ(message_of([&] { marching_cubes(sparse, 0); }), "marching_cubes: 0 values for 3 blocks of 64");
    sparse.values.assign(3 * SparseGrid::kCorners, 0);
    EXPECT_EQ(message_of([&] { marching_cubes(sparse, 0); }), "marching_cubes: block (1, 2, 3) is there twice");
    sparse.blocks[0] = {INT32_MAX, 0, 0};
    EXPECT_EQ(message_of([&] { marching_cubes(sparse, 0); }),
              "marching_cubes: block (2147483647, 0, 0) is too far out");
}

}  // namespace
}  // namespace stipple::test
