#include "stipple/geometry/voxelize.h"

#include <gtest/gtest.h>

#include <set>

#include "stipple/core/rng.h"
#include "stipple/geometry/glyphs.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/morton.h"
#include "stipple/geometry/orient_faces.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/ops/voxel_grid.h"
#include "tests/geometry/mesh_shapes.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using Cell = std::array<int32_t, 3>;

std::set<Cell> cells_of(const Array<int32_t, 2>& voxels) {
    std::set<Cell> cells;
    for (int64_t i = 0; i < voxels.size(0); ++i) {
        const int32_t* v = voxels.data() + 3 * i;
        cells.insert({v[0], v[1], v[2]});
    }
    EXPECT_EQ(static_cast<int64_t>(cells.size()), voxels.size(0));
    return cells;
}

/// Whether a face has a point in a cell that is wider by `margin` on all sides: cut the face by its six planes.
bool touches(const Mesh& mesh, int64_t face, const Cell& cell, double size, double margin) {
    std::vector<std::array<double, 3>> polygon(3);
    for (int c = 0; c < 3; ++c)
        for (int axis = 0; axis < 3; ++axis)
            polygon[c][axis] = mesh.vertices.positions.view()(mesh.triangles.view()(face, c), axis) / size;
    for (int axis = 0; axis < 3; ++axis) {
        for (const int side : {-1, 1}) {
            const double limit = cell[axis] + (side > 0 ? 1 + margin : -margin);
            std::vector<std::array<double, 3>> left;
            for (size_t i = 0; i < polygon.size(); ++i) {
                const auto &a = polygon[i], &b = polygon[(i + 1) % polygon.size()];
                const double da = side * (limit - a[axis]), db = side * (limit - b[axis]);
                if (da >= 0) left.push_back(a);
                if ((da >= 0) != (db >= 0)) {
                    const double t = da / (da - db);
                    left.push_back({a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2])});
                }
            }
            polygon = std::move(left);
        }
    }
    return !polygon.empty();
}

TEST(GeometryVoxelize, FindsTheCellsThatFacesTouch) {
    for (const double size : {0.03, 0.2, 3.0}) {
        Mesh mesh = random_mesh(24, 9);
        std::fill_n(mesh.triangles.data() + 3, 3, 5);                         // a point
        mesh.triangles.data()[6] = mesh.triangles.data()[7];                  // a segment
        for (float& v : mesh.vertices.positions.span()) v = 3 * (v - 0.15f);  // both signs
        const std::set<Cell> found = cells_of(geometry::voxelize_mesh(mesh, size));
        std::set<Cell> all;
        for (int64_t f = 0; f < mesh.faces(); ++f) {
            const auto cell_at = [&](int c, int axis) {
                return static_cast<int32_t>(
                    std::floor(mesh.vertices.positions.view()(mesh.triangles.view()(f, c), axis) / size));
            };
            Cell low, high;
            for (int axis = 0; axis < 3; ++axis) {
                low[axis] = std::min({cell_at(0, axis), cell_at(1, axis), cell_at(2, axis)});
                high[axis] = std::max({cell_at(0, axis), cell_at(1, axis), cell_at(2, axis)});
            }
            Cell at;
            for (at[0] = low[0]; at[0] <= high[0]; ++at[0])
                for (at[1] = low[1]; at[1] <= high[1]; ++at[1])
                    for (at[2] = low[2]; at[2] <= high[2]; ++at[2]) {
                        if (touches(mesh, f, at, size, 1e-8)) all.insert(at);
                        if (touches(mesh, f, at, size, -1e-8)) {
                            ASSERT_TRUE(found.count(at)) << f;
                        }
                    }
        }
        for (const Cell& cell : found) ASSERT_TRUE(all.count(cell)) << cell[0] << " " << cell[1] << " " << cell[2];
    }
}

TEST(GeometryVoxelize, HoldsEveryPointOfTheSurfaceOnAnyThreads) {
    const Mesh mesh = wavy_torus(40);
    const std::array<double, 3> origin = {0.013, -0.2, 5};
    const auto [one, three] = on_threads([&] { return values_of(geometry::voxelize_mesh(mesh, 0.05, origin)); });
    EXPECT_EQ(one, three);
    const std::set<Cell> found = cells_of(geometry::voxelize_mesh(mesh, 0.05f, origin));
    const geometry::SurfaceSamples samples = geometry::sample_surface(mesh, 50'000, 1);
    const ops::VoxelGrid grid = ops::voxel_grid(samples.points.view(), 0.05f, origin);
    int64_t missed = 0;  // samples are rounded to float32 and may fall out of their face
    for (const Cell& cell : cells_of(grid.coordinates)) missed += !found.count(cell);
    EXPECT_LE(missed, 2);
    EXPECT_LT(static_cast<double>(found.size()), 1.2 * static_cast<double>(grid.cells.rows()));
    for (size_t i = 3; i < one.size(); i += 3)
        ASSERT_TRUE(std::tie(one[i - 1], one[i - 2], one[i - 3]) < std::tie(one[i + 2], one[i + 1], one[i]));
}

TEST(GeometryVoxelize, FacesBetweenLayersBelongToTheUpperOne) {
    const Mesh mesh = mesh_of({{0.5f, 0.5f, 2}, {1.5f, 0.5f, 2}, {0.5f, 0.75f, 2}}, {{0, 1, 2}});
    EXPECT_EQ(cells_of(geometry::voxelize_mesh(mesh, 1)), (std::set<Cell>{{0, 0, 2}, {1, 0, 2}}));
    EXPECT_EQ(geometry::voxelize_mesh(mesh_of({}, {}), 1).size(0), 0);
    EXPECT_EQ(bad_argument_of([&] { geometry::voxelize_mesh(mesh, 0); }), "voxelize_mesh: cells of size 0");
    EXPECT_EQ(bad_argument_of([&] { geometry::voxelize_mesh(mesh, 1e-9); }),
              "voxelize_mesh: face 0 is more than 2^28 cells of size 1e-09 from the origin");
}

TEST(GeometryVoxelize, BoundaryAndCubesOfABlock) {
    Array<int32_t, 2> block({27, 3});
    for (int32_t i = 0; i < 27; ++i) {
        const int32_t at[3] = {i % 3, i / 3 % 3, i / 9 - 5};
        std::copy_n(at, 3, block.data() + 3 * i);
    }
    std::vector<int32_t> outer;
    for (int32_t i = 0; i < 27; ++i)
        if (i != 13) outer.push_back(i);
    EXPECT_EQ(values_of(geometry::boundary_voxels(block.view())), outer);
    const Mesh cubes = geometry::voxel_mesh(block.view(), 2, {10, 20, 30}, 0.25);
    EXPECT_EQ(cubes.faces(), 27 * 12);
    EXPECT_NEAR(geometry::surface_area(cubes), 27 * 6 * 1.5 * 1.5, 1e-3);
    const geometry::Orientation found = geometry::find_orientation(cubes);
    EXPECT_EQ(found.patches(), 27);
    EXPECT_EQ(found.turned_faces, 0);
    const Bounds bounds = bounds_of(cubes.vertices);
    EXPECT_EQ(bounds.min, (std::array<double, 3>{10.25, 20.25, 20.25}));
    EXPECT_EQ(bounds.max, (std::array<double, 3>{15.75, 25.75, 25.75}));
    EXPECT_EQ(bad_argument_of([&] { geometry::voxel_mesh(block.view(), 2, {}, 1); }),
              "voxel_mesh: gap 1, not 0 to below 1");
}

TEST(GeometryVoxelize, FloodFillStopsAtWalls) {
    Array<int32_t, 3> grid({4, 5, 6});
    for (int32_t& v : grid.span()) v = 0;
    for (int64_t y = 0; y < 5; ++y)
        for (int64_t z = 0; z < 6; ++z) grid.view()(2, y, z) = 1;
    EXPECT_EQ(geometry::flood_fill(grid.view(), {0, 0, 0}, 7), 60);
    EXPECT_EQ(grid.view()(1, 4, 5), 7);
    EXPECT_EQ(grid.view()(2, 0, 0), 1);
    EXPECT_EQ(grid.view()(3, 0, 0), 0);
    EXPECT_EQ(geometry::flood_fill(grid.view(), {0, 0, 0}, 7), 0);
    EXPECT_EQ(bad_argument_of([&] {
                  geometry::flood_fill(grid.view(), {4, 0, 0}, 7);
              }),
              "flood_fill: start [4, 0, 0] of a grid of [4, 5, 6]");
}

TEST(GeometryGlyphs, SpheresAndDiscsStandAtTheirPoints) {
    const float places[] = {0, 0, 0, 5, 0, 0}, sizes[] = {1, 0.5f}, directions[] = {0, 0, -3, 1, 1, 0};
    const View<const float, 2> points(places, {2, 3}), normals(directions, {2, 3});
    const View<const float, 1> radii(sizes, {2});
    const Mesh spheres = geometry::sphere_glyphs(points, radii, 2);
    EXPECT_EQ(spheres.faces(), 2 * 320);
    EXPECT_EQ(geometry::find_orientation(spheres).turned_faces, 0);
    for (int64_t v = 0; v < spheres.vertices.size(); ++v) {
        const int64_t i = v / (spheres.vertices.size() / 2);
        const float* p = spheres.vertices.positions.data() + 3 * v;
        EXPECT_NEAR(std::hypot(p[0] - 5 * static_cast<float>(i), p[1], p[2]), sizes[i], 1e-6);
    }
    const Mesh discs = geometry::surfel_glyphs(points, normals, radii, 100);
    EXPECT_EQ(discs.faces(), 200);
    EXPECT_NEAR(geometry::surface_area(discs), std::numbers::pi * 1.25, 0.01);
    Array<float, 2> found({200, 3});
    geometry::face_normals(discs, found.view());
    for (int64_t f = 0; f < 200; ++f)
        for (int axis = 0; axis < 3; ++axis)
            EXPECT_NEAR(found.view()(f, axis),
                        f < 100 ? (axis == 2 ? -1 : 0) : (axis == 2 ? 0 : std::numbers::sqrt2 / 2), 1e-5);
    const float none[] = {0, 0, 0, 0, 0, 1};
    EXPECT_EQ(bad_argument_of([&] {
                  geometry::surfel_glyphs(points, View<const float, 2>(none, {2, 3}), radii);
              }),
              "surfel_glyphs: normal 0 has no direction");
    const float flat[] = {1, 0};
    EXPECT_EQ(bad_argument_of([&] { geometry::sphere_glyphs(points, View<const float, 1>(flat, {2})); }),
              "sphere_glyphs: radius 0 of point 1");
}

TEST(GeometryMorton, CodesGoBackAndGrow) {
    for (uint64_t i = 0; i < 2000; ++i) {
        Cell cell;
        for (int axis = 0; axis < 3; ++axis)
            cell[axis] = static_cast<int32_t>(Rng(1).below(3 * i + static_cast<uint64_t>(axis), 1 << 21)) - (1 << 20);
        const uint64_t code = geometry::morton_encode(cell[0], cell[1], cell[2]);
        EXPECT_EQ(geometry::morton_decode(code), cell);
        if (cell[0] + 1 < 1 << 20) {
            EXPECT_GT(geometry::morton_encode(cell[0] + 1, cell[1], cell[2]), code);
        }
    }
    EXPECT_EQ(geometry::morton_encode(-(1 << 20), -(1 << 20), -(1 << 20)), 0u);
    EXPECT_EQ(geometry::morton_encode(1 - (1 << 20), -(1 << 20), 1 - (1 << 20)), 5u);
}

}  // namespace
}  // namespace stipple::test
