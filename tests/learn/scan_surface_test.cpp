// The surface of dense clouds against shapes that are known, and sets of scans.

#include "stipple/learn/upsampling/scan_surface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/primitives.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/io/format.h"
#include "stipple/learn/upsampling/surface_patches.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

/// Independent and uniform on the unit sphere, above `lowest`.
Array<float, 2> dense_sphere(int64_t n, uint64_t seed, double lowest = -2) {
    Array<float, 2> points({n, 3});
    const Rng rng(seed);
    uint64_t draw = 0;
    for (int64_t i = 0; i < n; ++i) {
        Vec3d p;
        do {
            p = unit(Vec3d{rng.normal(draw), rng.normal(draw + 1), rng.normal(draw + 2)});
            draw += 3;
        } while (p.z < lowest);
        for (int axis = 0; axis < 3; ++axis) points.data()[3 * i + axis] = static_cast<float>(p[axis]);
    }
    return points;
}

Array<float, 1> distances_to(const Mesh& mesh, const Array<float, 2>& points) {
    Array<float, 1> distances({points.size(0)});
    geometry::ClosestPoints found;
    found.distances = distances.view();
    geometry::closest_point(geometry::MeshIndex(mesh), points.view(), found);
    return distances;
}

double largest_of(const Array<float, 1>& values) {
    return *std::max_element(values.span().begin(), values.span().end());
}

double mean_of_distances(const Array<float, 1>& values) {
    double sum = 0;
    for (const float value : values.span()) sum += value;
    return sum / static_cast<double>(values.size(0));
}

Mesh scan_of(Array<float, 2> points) {
    Mesh scan;
    scan.vertices.positions = std::move(points);
    return scan;
}

TEST(LearnScanSurface, LiesWithinItsBoundOfASphereAndCoversIt) {
    constexpr int64_t kScanPoints = 8000;
    const double spacing = std::sqrt(4 * M_PI / kScanPoints);
    const Mesh mesh = surface_of_points(dense_sphere(kScanPoints, 1));
    EXPECT_EQ(mesh.vertices.size(), kScanPoints);
    // Every triangle inside of the sphere by no more than its bound.
    const Array<float, 2> inside = geometry::sample_surface(mesh, 20000, 3).points;
    double deepest = 0;
    for (int64_t i = 0; i < inside.size(0); ++i)
        deepest = std::max(
            deepest, 1 - std::hypot(double{inside.data()[3 * i]}, inside.data()[3 * i + 1], inside.data()[3 * i + 2]));
    EXPECT_LT(deepest, 2 * spacing * spacing * 1.5);  // the spacing there is an estimate
    // Other points of the sphere are near it: nearest points alone would leave half a spacing.
    const Array<float, 1> distances = distances_to(mesh, dense_sphere(20000, 2));
    EXPECT_LT(mean_of_distances(distances), 0.03 * spacing);
    EXPECT_LT(std::count_if(distances.span().begin(), distances.span().end(),
                            [&](float distance) { return distance > 0.5 * spacing; }),
              20);  // of 20,000: what lies in holes that chance made
    EXPECT_LT(largest_of(distances), 2 * spacing);
    // Hardly any surface is there twice.
    std::set<std::array<int32_t, 3>> different;
    double area = 0;
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        std::array<int32_t, 3> face;
        Vec3d corner[3];
        for (int c = 0; c < 3; ++c) {
            face[static_cast<size_t>(c)] = mesh.triangles.view()(f, c);
            const float* row = mesh.vertices.positions.data() + 3 * int64_t{face[static_cast<size_t>(c)]};
            corner[c] = {row[0], row[1], row[2]};
        }
        different.insert(face);
        area += 0.5 * length(cross(corner[1] - corner[0], corner[2] - corner[0]));
    }
    EXPECT_EQ(static_cast<int64_t>(different.size()), mesh.faces());
    EXPECT_NEAR(area, 4 * M_PI, 0.06 * 4 * M_PI);
}

TEST(LearnScanSurface, LeavesHolesOpen) {
    constexpr int64_t kScanPoints = 4000;
    const double spacing = std::sqrt(2 * M_PI / kScanPoints);
    const Mesh mesh = surface_of_points(dense_sphere(kScanPoints, 1, 0));
    Array<float, 2> below({1, 3});
    below.data()[0] = 0, below.data()[1] = 0, below.data()[2] = -0.3f;
    EXPECT_GT(largest_of(distances_to(mesh, below)), 1);  // the rim of the half sphere, or its top from within
    EXPECT_LT(largest_of(distances_to(mesh, dense_sphere(5000, 7, 3 * spacing))), 0.5 * spacing);
}

TEST(LearnScanSurface, PointsWithoutNeighboursStayPoints) {
    Array<float, 2> line({50, 3});
    for (int64_t i = 0; i < 50; ++i) {
        line.data()[3 * i] = 0.1f * static_cast<float>(i);
        line.data()[3 * i + 1] = line.data()[3 * i + 2] = 0;
    }
    const Array<float, 2> same = line.clone();
    const Mesh mesh = surface_of_points(std::move(line));
    EXPECT_EQ(mesh.faces(), 50);
    EXPECT_EQ(largest_of(distances_to(mesh, same)), 0);
    EXPECT_EQ(surface_of_points(Array<float, 2>(dense_sphere(1, 1))).faces(), 1);
    Array<float, 2> bad = dense_sphere(5, 1);
    bad.data()[4] = NAN;
    EXPECT_ERROR(surface_of_points(std::move(bad)), bad_argument, "not finite");
}

TEST(LearnScanSurface, ScansAreShapesWithPoolsOfTheirPoints) {
    std::vector<Mesh> scans;
    for (uint64_t i = 0; i < 3; ++i) scans.push_back(scan_of(dense_sphere(5000, i)));
    scans[0].vertices.positions.data()[0] = NAN;                                                 // left out
    std::copy_n(scans[1].vertices.positions.data(), 3, scans[1].vertices.positions.data() + 3);  // made one
    const SurfaceSet set =
        make_surfaces(std::move(scans), {"a", "b", "c"},
                      {.held_out = 0.34, .pools = 2, .samples = 2048, .region = 8000}, ProgressMode::never);
    EXPECT_EQ(set.train, (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(set.held_out, (std::vector<int64_t>{2}));
    EXPECT_EQ(set.shapes[0].mesh.vertices.size(), 4999);
    EXPECT_EQ(set.shapes[1].mesh.vertices.size(), 4999);
    EXPECT_NEAR(set.shapes[2].area, 4 * M_PI, 0.5);
    for (const SurfaceShape& shape : set.shapes) {
        std::set<std::array<float, 3>> all;
        for (const SurfacePool& pool : shape.pools) {
            EXPECT_EQ(pool.points.size(0), 2048);
            EXPECT_EQ(std::set<int32_t>(pool.order.begin(), pool.order.end()).size(), 2048u);
            EXPECT_LT(largest_of(distances_to(shape.mesh, pool.points)), 1e-6);
            for (int64_t i = 0; i < 2048; ++i)
                all.insert({pool.points.data()[3 * i], pool.points.data()[3 * i + 1], pool.points.data()[3 * i + 2]});
        }
        EXPECT_EQ(all.size(), 4096u);  // no point is in two pools, as there are enough
    }
}

TEST(LearnScanSurface, LargeScansAreUsedByRegions) {
    const auto make = [](uint64_t seed) {
        std::vector<Mesh> scans;
        scans.push_back(scan_of(dense_sphere(9000, 1)));
        scans.push_back(scan_of(dense_sphere(3000, 2)));
        return make_surfaces(std::move(scans), {"large", "small"},
                             {.held_out = 0.5, .pools = 2, .samples = 1024, .region = 3000, .seed = seed},
                             ProgressMode::never);
    };
    const SurfaceSet set = make(4);
    ASSERT_EQ(set.shapes.size(), 4u);
    EXPECT_EQ(set.train, (std::vector<int64_t>{0, 1, 2}));
    EXPECT_EQ(set.held_out, (std::vector<int64_t>{3}));
    EXPECT_EQ(set.shapes[1].name, "large, region 1");
    for (const SurfaceShape& shape : set.shapes) EXPECT_EQ(shape.mesh.vertices.size(), 3000);
    // A third of the sphere, blown up: its radius of curvature is above 1.
    EXPECT_LT(set.shapes[0].area, 0.8 * set.shapes[3].area);
    const auto first = [](const SurfaceSet& made) { return made.shapes[0].pools[0].points.data()[0]; };
    EXPECT_EQ(first(set), first(make(4)));
    EXPECT_NE(first(set), first(make(5)));
}

TEST(LearnScanSurface, FoldersAreOfOneKind) {
    const test::TemporaryFolder folder(test::Where::memory);
    io::Warnings warnings;
    const auto save = [&](const char* name, const Mesh& mesh) {
        io::save(folder / name, mesh, Overwrite::allow, {}, warnings);
    };
    const SurfaceOptions options = {.pools = 2, .samples = 256};
    const auto load = [&] { return load_surfaces(folder / "", options, warnings, ProgressMode::never); };
    EXPECT_ERROR(load(), bad_file, "without meshes or clouds");
    save("b.xyz", scan_of(dense_sphere(400, 1)));
    save("a.pcd", scan_of(dense_sphere(300, 2)));
    ASSERT_EQ(load().shapes.size(), 2u);
    save("c.ply", scan_of(dense_sphere(300, 3)));
    EXPECT_EQ(load().shapes[2].name, "c.ply");
    save("d.ply", geometry::cube_mesh());
    EXPECT_ERROR(load(), bad_file, "d.ply");
    save("c.ply", geometry::cube_mesh());
    ASSERT_EQ(load().shapes.size(), 2u);  // meshes: c and d; clouds beside them are left alone
    EXPECT_EQ(load().shapes[0].name, "c.ply");
    save("c.ply", scan_of(dense_sphere(255, 3)));
    test::write_file(folder / "manifest.tsv", "file\nc.ply\n");
    EXPECT_ERROR(load(), bad_file, "255 different points, fewer than patch.samples, which is 256");
    EXPECT_ERROR(load_surfaces(folder / "c.ply", options, warnings, ProgressMode::never), bad_file, "is no folder");
}

}  // namespace
}  // namespace stipple::learn
