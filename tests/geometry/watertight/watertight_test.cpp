#include "stipple/geometry/watertight.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh_check.h"
#include "stipple/io/format.h"
#include "tests/geometry/broken_meshes.h"
#include "tests/geometry/geometry.h"
#include "tests/geometry/shell_quality.h"
#include "tests/support/clouds.h"
#include "tests/support/data_sets.h"

namespace stipple::test {
namespace {

using geometry::check_mesh;
using geometry::MeshCheck;
using geometry::watertight;
using geometry::WatertightOptions;

WatertightOptions at_resolution(int32_t resolution) {
    WatertightOptions options;
    options.resolution = resolution;
    return options;
}

double extent_of(const Mesh& mesh) {
    double extent = 0;
    for (int k = 0; k < 3; ++k) {
        double min = INFINITY, max = -INFINITY;
        for (int32_t v : mesh.triangles.span()) {
            min = std::min<double>(min, mesh.vertices.positions.data()[3 * v + k]);
            max = std::max<double>(max, mesh.vertices.positions.data()[3 * v + k]);
        }
        extent = std::max(extent, max - min);
    }
    return extent;
}

/// Everything that watertight() promises.
MeshCheck expect_sound(const std::string& name, const Mesh& input, const Mesh& output, int32_t resolution) {
    const MeshCheck check = check_mesh(output);
    EXPECT_TRUE(check.is_watertight(output)) << name;
    EXPECT_EQ(check.unreferenced_vertices, 0) << name;
    EXPECT_EQ(check.duplicate_faces, 0) << name;
    EXPECT_GT(check.volume, 0) << name;
    const double voxel = extent_of(input) / resolution;
    const ShellFit fit = measure_fit(input, output, voxel, 200);
    EXPECT_LT(fit.from_output, voxel) << name;
    EXPECT_LT(fit.from_visible, voxel) << name;
    EXPECT_GT(fit.visible, 0) << name;
    return check;
}

/// Points u, v on the unit sphere up to a polar angle: 1 closes it.
Mesh bowl(double until) {
    std::vector<float> positions;
    std::vector<int32_t> triangles;
    constexpr int32_t kN = 40;
    for (int32_t j = 0; j <= kN; ++j)
        for (int32_t i = 0; i < kN; ++i) {
            const double phi = 2 * M_PI * i / kN, theta = M_PI * until * j / kN;
            for (double x : {std::sin(theta) * std::cos(phi), std::sin(theta) * std::sin(phi), -std::cos(theta)})
                positions.push_back(static_cast<float>(x));
        }
    for (int32_t j = 0; j < kN; ++j)
        for (int32_t i = 0; i < kN; ++i) {
            const int32_t a = j * kN + i, b = j * kN + (i + 1) % kN;
            triangles.insert(triangles.end(), {a, b, b + kN, a, b + kN, a + kN});
        }
    return make_mesh(positions, triangles);
}

TEST(Watertight, ClosedShapesKeepVolumeAreaAndTopology) {
    const MeshCheck ball = expect_sound("sphere", sphere(4), watertight(sphere(4), at_resolution(32)), 32);
    const double r = 1 + 0.05 * 2 / 32;  // the offset
    EXPECT_NEAR(ball.volume, 4 * M_PI / 3 * r * r * r, 0.01 * ball.volume);
    EXPECT_NEAR(ball.area, 4 * M_PI * r * r, 0.01 * ball.area);
    EXPECT_EQ(ball.euler, 2);
    EXPECT_EQ(ball.components, 1);
    const Mesh ring = wavy_torus(96, 48);
    const MeshCheck torus = expect_sound("torus", ring, watertight(ring, at_resolution(40)), 40);
    EXPECT_NEAR(torus.volume, check_mesh(ring).volume, 0.03 * torus.volume);
    EXPECT_EQ(torus.euler, 0);
    EXPECT_EQ(torus.components, 1);
    const Mesh box = watertight(cube(), at_resolution(16));
    const MeshCheck flat = expect_sound("cube", cube(), box, 16);
    const double side = 1 + 2 * 0.05 / 16;
    EXPECT_NEAR(flat.volume, side * side * side, 1e-3);
    EXPECT_EQ(crossing_edges(box), 0);
}

TEST(Watertight, OpenSurfacesBecomeShellsAndHolesStayOpen) {
    const Mesh open = bowl(0.6), closed = watertight(open, at_resolution(32));
    const MeshCheck check = expect_sound("bowl", open, closed, 32);
    const double thickness = 2 * 0.05 * extent_of(open) / 32;
    EXPECT_NEAR(check.volume, check_mesh(open).area * thickness, 0.2 * check.volume);
    EXPECT_NEAR(check.area, 2 * check_mesh(open).area, 0.05 * check.area);
    EXPECT_EQ(check.euler, 2);
    // One triangle is the smallest shell, and a segment is one too.
    const Mesh triangle = make_mesh({0, 0, 0, 1, 0, 0, 0.3f, 0.8f, 0.1f}, {0, 1, 2});
    EXPECT_EQ(expect_sound("triangle", triangle, watertight(triangle, at_resolution(8)), 8).euler, 2);
    const Mesh segment = make_mesh({0, 0, 0, 1, 0.5f, 0.2f}, {0, 1, 1});
    EXPECT_EQ(check_mesh(watertight(segment, at_resolution(8))).euler, 2);
}

TEST(Watertight, HolesAreCappedWhereAsked) {
    const Mesh open = bowl(0.9);  // the hole is 0.62 wide, 10 voxels
    WatertightOptions options = at_resolution(32);
    options.cap_holes = 12;
    const Mesh capped = watertight(open, options);
    const MeshCheck check = check_mesh(capped);
    EXPECT_TRUE(check.is_watertight(capped));
    EXPECT_EQ(check.components, 1);
    EXPECT_EQ(check.euler, 2);
    EXPECT_NEAR(check.volume, 4 * M_PI / 3, 0.05 * 4 * M_PI / 3);
    options.cap_holes = 4;
    EXPECT_LT(check_mesh(watertight(open, options)).volume, 0.2);
}

TEST(Watertight, AGreaterCapClosesAllThatASmallerOneDoes) {
    // The hole is 10 voxels wide, the inside 32: caps of the width of the inside used to close nothing.
    const Mesh open = bowl(0.9);
    double before = 0;
    for (int32_t cap : {2, 6, 9, 12, 16, 24, 31, 32}) {
        WatertightOptions options = at_resolution(32);
        options.cap_holes = cap;
        const Mesh capped = watertight(open, options);
        const MeshCheck check = check_mesh(capped);
        EXPECT_TRUE(check.is_watertight(capped)) << cap;
        EXPECT_GE(check.volume, 0.999 * before) << cap;
        if (cap >= 12) {
            EXPECT_NEAR(check.volume, 4 * M_PI / 3, 0.05 * 4 * M_PI / 3) << cap;
        }
        before = check.volume;
    }
}

TEST(Watertight, HollowResultsAreKnown) {
    const auto hollow = [](const Mesh& mesh, int32_t cap) {
        WatertightOptions options = at_resolution(32);
        options.cap_holes = cap;
        return geometry::hollow_share(mesh, watertight(mesh, options));
    };
    EXPECT_GT(hollow(bowl(0.9), 0), 0.9);
    EXPECT_EQ(hollow(bowl(0.9), 12), 0);
    EXPECT_EQ(hollow(sphere(4), 0), 0);
    EXPECT_EQ(hollow(cube(), 0), 0);
    EXPECT_EQ(hollow(make_mesh({0, 0, 0, 1, 0, 0, 0.3f, 0.8f, 0.1f}, {0, 1, 2}), 0), 0);  // encloses nothing
}

TEST(Watertight, TheScannedBunnyIsHollowUntilItsHolesAreCapped) {
    STIPPLE_NEEDS_DATA("scans/bunny/bun_zipper_res3.ply");
    io::Warnings warnings;
    const Mesh bunny = io::load(*data_file("scans/bunny/bun_zipper_res3.ply"), {}, warnings);
    const Mesh shell = watertight(bunny);
    EXPECT_GT(geometry::hollow_share(bunny, shell), 0.9);
    double before = check_mesh(shell).volume;
    for (int32_t cap : {4, 8, 16, 32, 64}) {
        WatertightOptions options;
        options.cap_holes = cap;
        const Mesh capped = watertight(bunny, options);
        const MeshCheck check = check_mesh(capped);
        EXPECT_TRUE(check.is_watertight(capped)) << cap;
        EXPECT_GE(check.volume, 0.999 * before) << cap;
        before = check.volume;
        if (cap >= 16) {
            EXPECT_LT(geometry::hollow_share(bunny, capped), 0.02) << cap;
        }
    }
}

TEST(Watertight, CavitiesAreFilledUnlessKept) {
    Mesh nested = sphere(4);  // and a cube inside it
    const Mesh box = cube();
    std::vector<float> positions(nested.vertices.positions.span().begin(), nested.vertices.positions.span().end());
    std::vector<int32_t> triangles(nested.triangles.span().begin(), nested.triangles.span().end());
    const auto shift = static_cast<int32_t>(positions.size() / 3);
    for (float x : box.vertices.positions.span()) positions.push_back(0.5f * x - 0.25f);
    for (int32_t v : box.triangles.span()) triangles.push_back(v + shift);
    nested = make_mesh(positions, triangles);
    WatertightOptions options = at_resolution(32);
    EXPECT_EQ(check_mesh(watertight(nested, options)).components, 1);
    options.keep_inner = true;
    const Mesh kept = watertight(nested, options);
    const MeshCheck check = check_mesh(kept);
    EXPECT_TRUE(check.is_watertight(kept));
    EXPECT_EQ(check.components, 4);  // two sides of the sphere, two of the cube
    EXPECT_EQ(check.euler, 8);
    EXPECT_NEAR(check.volume, (4 * M_PI + 6 * 0.25) * 2 * 0.05 * 2 / 32, 0.1 * check.volume);
}

TEST(Watertight, WithoutProjectionVoxelsStayWhatTheyAre) {
    WatertightOptions options = at_resolution(8);
    options.project = false;
    const Mesh blocks = watertight(sphere(3), options);
    EXPECT_TRUE(check_mesh(blocks).is_watertight(blocks));
    EXPECT_GT(check_mesh(blocks).volume, 4 * M_PI / 3);
}

TEST(Watertight, BrokenMeshes) {
    for (int i = 0; i < 48; ++i) {
        const BrokenMesh broken = broken_mesh(i, 16);
        expect_sound(std::to_string(i) + " " + broken.name, broken.mesh, watertight(broken.mesh, at_resolution(16)),
                     16);
    }
    const Mesh triangles = soup(300);
    expect_sound("soup", triangles, watertight(triangles, at_resolution(24)), 24);
}

TEST(Watertight, FewerFacesKeepThePromises) {
    // As fine as the voxels, flat parts of a few faces; the shell of a bowl is thin and bent.
    const Mesh meshes[] = {cube(), wavy_torus(96, 48), bowl(0.6), sphere(4)};
    for (size_t i = 0; i < std::size(meshes); ++i) {
        WatertightOptions options = at_resolution(32);
        const Mesh all = watertight(meshes[i], options);
        const MeshCheck whole = check_mesh(all);
        options.tolerance = 0.05;
        const Mesh few = watertight(meshes[i], options);
        const MeshCheck check = expect_sound("mesh " + std::to_string(i), meshes[i], few, 32);
        EXPECT_LT(few.faces(), all.faces() / 3) << i;
        EXPECT_EQ(check.euler, whole.euler) << i;
        EXPECT_EQ(check.components, whole.components) << i;
        EXPECT_NEAR(check.volume, whole.volume, i == 2 ? 0.1 * whole.volume : 0.01 * whole.volume) << i;
        options.faces = 500;
        const Mesh counted = watertight(meshes[i], options);
        EXPECT_TRUE(check_mesh(counted).is_watertight(counted)) << i;
        EXPECT_LE(counted.faces(), 500) << i;
        EXPECT_GE(counted.faces(), 498) << i;
    }
}

TEST(Watertight, FewerFacesOfBrokenMeshes) {
    for (int i = 0; i < 48; ++i) {
        const BrokenMesh broken = broken_mesh(i, 16);
        WatertightOptions options = at_resolution(16);
        options.tolerance = 0.05;
        expect_sound(std::to_string(i) + " " + broken.name, broken.mesh, watertight(broken.mesh, options), 16);
        options.faces = 60;
        const Mesh counted = watertight(broken.mesh, options);
        EXPECT_TRUE(check_mesh(counted).is_watertight(counted)) << i << " " << broken.name;
    }
}

TEST(Watertight, MeshesOfTheDataSet) {
    for (const char* name : {"cgal_tripod", "cgal_p", "libigl_decimated_knight", "psb_hand_185"}) {
        const std::string file = std::string("upsample_train_meshes/") + name + ".ply";
        STIPPLE_NEEDS_DATA(file);
        io::Warnings warnings;
        const Mesh mesh = io::load_mesh(*data_file(file), {}, warnings);
        expect_sound(name, mesh, watertight(mesh, at_resolution(32)), 32);
    }
}

TEST(Watertight, ScaleAndPlaceDoNotMatter) {
    const Mesh ring = wavy_torus(48, 24), small = scaled(ring, 0x1p-20f);
    const Mesh a = watertight(ring, at_resolution(24)), b = watertight(small, at_resolution(24));
    EXPECT_EQ(difference(scaled(a, 0x1p-20f), b), "");
    Mesh far = ring.clone();
    for (float& x : far.vertices.positions.span()) x += 200;
    expect_sound("far", far, watertight(far, at_resolution(24)), 24);
}

TEST(Watertight, ThreadsDoNotMatter) {
    const Mesh mesh = broken_mesh(12, 30).mesh;
    const int before = threads();
    set_threads(1);
    const Mesh one = watertight(mesh, at_resolution(32));
    set_threads(3);
    const Mesh three = watertight(mesh, at_resolution(32));
    set_threads(before);
    EXPECT_EQ(difference(one, three), "");
}

TEST(Watertight, WhatCannotBeDoneIsSaid) {
    const auto message = [](const Mesh& mesh, const WatertightOptions& options = {}) {
        return bad_argument_of([&] { watertight(mesh, options); });
    };
    EXPECT_EQ(message(make_mesh({0, 0, 0, 1, 0, 0, 0, NAN, 0}, {0, 1, 2})),
              "watertight: vertex 2 of face 0 is not finite");
    EXPECT_EQ(message(make_mesh({0, 0, 0}, {})), "watertight: the mesh has no faces");
    EXPECT_EQ(message(make_mesh({1, 2, 3}, {0, 0, 0})), "watertight: all faces are at one point");
    EXPECT_EQ(
        message(make_mesh({1e6f, 0, 0, 1e6f + 1, 0, 0, 1e6f, 1, 0}, {0, 1, 2})),
        "watertight: voxels of 0.015625 are too small for float32 coordinates of 1e+06: move the origin nearer or "
        "take a lower resolution");
    WatertightOptions options;
    options.resolution = 1;
    EXPECT_EQ(message(cube(), options), "resolution must be 2 to 2048, got 1");
    options = {};
    options.offset = 0;
    EXPECT_EQ(message(cube(), options), "offset must be 0.01 to 0.5, got 0");
    options = {};
    options.cap_holes = -1;
    EXPECT_EQ(message(cube(), options), "cap_holes must be from 0, got -1");
    options.cap_holes = 65;
    EXPECT_EQ(message(cube(), options), "cap_holes must be 0 to the resolution, 64, got 65");
    options.cap_holes = 3;
    options.keep_inner = true;
    EXPECT_EQ(message(cube(), options),
              "watertight: cap_holes fills the inside that keep_inner would keep, take one of them");
}

}  // namespace
}  // namespace stipple::test
