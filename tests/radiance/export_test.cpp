#include "stipple/radiance/export.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh_check.h"
#include "stipple/radiance/render.h"
#include "tests/support/expect_error.h"
#include "tests/support/radiance_fields.h"

namespace stipple::radiance {
namespace {

constexpr float kRadius = 0.7f;

DenseField some_ball() {
    DenseField dense = test::ball_field(40, kRadius, 12, 96);
    dense.origin = {100, 200, 300};
    return dense;
}

Vec3d position(const PointCloud& cloud, int64_t i) {
    return to_vec3(cloud.positions.data() + 3 * i);
}

// Colour by the half of the ball, but for a voxel about its middle.
void expect_ball_colour(const PointCloud& cloud, int64_t i, float voxel) {
    const Attribute& colour = *find(cloud.attributes, "color");
    const double z = position(cloud, i).z;
    if (std::abs(z) < 2 * voxel) return;
    EXPECT_GT(colour.value(i, z > 0 ? 0 : 2), 240);
    EXPECT_LT(colour.value(i, z > 0 ? 2 : 0), 15);
    EXPECT_LT(colour.value(i, 1), 15);
}

TEST(ExportPoints, AreOnTheBallWithItsColoursAndNormals) {
    const DenseField dense = some_ball();
    const float voxel = dense.grid.voxel;
    int64_t views = 0;
    const PointCloud cloud = export_points(pack(dense), {.count = 5000}, Device{}, [&](int64_t done, int64_t total) {
        EXPECT_EQ(total, 12);
        views = done;
    });
    EXPECT_EQ(views, 12);
    validate(cloud);
    EXPECT_EQ(cloud.size(), 5000);
    EXPECT_EQ(cloud.origin, dense.origin);
    const Attribute& normal = *find(cloud.attributes, "normal");
    const Attribute& confidence = *find(cloud.attributes, "confidence");
    int64_t near = 0, outwards = 0, sure = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const Vec3d p = position(cloud, i);
        near += std::abs(length(p) - kRadius) < 2 * voxel;
        outwards += dot(unit(p), Vec3d{normal.value(i, 0), normal.value(i, 1), normal.value(i, 2)}) > 0.9;
        EXPECT_GE(confidence.value(i), 0.5);
        EXPECT_LE(confidence.value(i), 1);
        sure += confidence.value(i) > 0.9;
        expect_ball_colour(cloud, i, voxel);
    }
    EXPECT_GE(near, cloud.size() * 95 / 100);
    EXPECT_GE(outwards, cloud.size() * 95 / 100);
    EXPECT_GE(sure, cloud.size() * 8 / 10);
    // From all sides: cameras are all about.
    Box<double> box = Box<double>::none();
    for (int64_t i = 0; i < cloud.size(); ++i) box.add(position(cloud, i));
    for (int axis = 0; axis < 3; ++axis) EXPECT_GT(box.extent(axis), 1.9 * kRadius);
}

TEST(ExportPoints, SpacingAndBoxAndSeed) {
    const Field field = pack(some_ball());
    const PointCloud thin = export_points(field, {.count = 0, .spacing = 0.2}, Device{});
    EXPECT_GT(thin.size(), 100);
    EXPECT_LT(thin.size(), 1000);
    std::vector<std::array<int, 3>> cells;
    for (int64_t i = 0; i < thin.size(); ++i) {
        const Vec3d p = position(thin, i);
        cells.push_back({static_cast<int>(std::floor(p.x / 0.2)), static_cast<int>(std::floor(p.y / 0.2)),
                         static_cast<int>(std::floor(p.z / 0.2))});
    }
    std::sort(cells.begin(), cells.end());
    EXPECT_EQ(std::unique(cells.begin(), cells.end()), cells.end());

    const Box<double> upper = {{0, 0, 300.2}, {1000, 1000, 1000}};
    const PointCloud part = export_points(field, {.count = 500, .box = upper}, Device{});
    EXPECT_EQ(part.size(), 500);
    for (int64_t i = 0; i < part.size(); ++i) EXPECT_GE(part.world(i, 2), 300.2);

    const PointCloud a = export_points(field, {.count = 300, .seed = 1}, Device{});
    set_threads(3);
    const PointCloud b = export_points(field, {.count = 300, .seed = 1}, Device{});
    set_threads(0);
    const PointCloud c = export_points(field, {.count = 300, .seed = 2}, Device{});
    EXPECT_TRUE(std::equal(a.positions.span().begin(), a.positions.span().end(), b.positions.span().begin()));
    EXPECT_FALSE(std::equal(a.positions.span().begin(), a.positions.span().end(), c.positions.span().begin()));
}

// A veil that hides what is behind it from a camera that sees it askew, while three others look straight through.
TEST(ExportPoints, WhatOthersSeeThroughHasLittleConfidence) {
    DenseField dense = test::empty_field({32, 32, 32}, {{-1, -1, -1}, {1, 1, 1}});
    test::set_density(dense, [&](Vec3f p) { return std::fabs(p.z) < 0.05f ? 3.5f : kEmptyDensity; });
    dense.near = 0.1f;
    for (double x : {0.0, 0.1, 0.2}) dense.cameras.push_back(test::camera_at({x, 0, 3}, {0, 0, 0}, 40, 40, 40));
    dense.cameras.push_back(test::camera_at({3, 0, 0.6}, {0, 0, 0}, 40, 40, 40));
    const Field field = pack(dense);
    EXPECT_EQ(export_points(field, {}, Device{}).size(), 0);
    const PointCloud veil = export_points(field, {.least_confidence = 0}, Device{});
    ASSERT_GT(veil.size(), 20);
    const Attribute& confidence = *find(veil.attributes, "confidence");
    for (int64_t i = 0; i < veil.size(); ++i) EXPECT_LE(confidence.value(i), 0.34) << i;
}

TEST(ExportPoints, WrongUse) {
    Field field = pack(some_ball());
    EXPECT_ERROR(export_points(field, {.count = -1}, Device{}), bad_argument, "count must be from 0, got -1");
    EXPECT_ERROR(export_points(field, {.spacing = -1}, Device{}), bad_argument, "spacing");
    EXPECT_ERROR(export_points(field, {.least_confidence = 2}, Device{}), bad_argument, "confidence");
    field.cameras.clear();
    EXPECT_ERROR(export_points(field, {}, Device{}), bad_argument, "no cameras");
    // Nothing to see is no error.
    DenseField empty = test::empty_field({8, 8, 8}, {{-1, -1, -1}, {1, 1, 1}});
    empty.cameras = test::cameras_about({0, 0, 0}, 4, 2, 8);
    EXPECT_EQ(export_points(pack(empty), {}, Device{}).size(), 0);
    EXPECT_EQ(export_points(pack(empty), {.count = 0, .spacing = 0.1}, Device{}).size(), 0);
}

TEST(ExportMesh, IsAClosedBall) {
    const DenseField dense = some_ball();
    const Mesh mesh = export_mesh(pack(dense), {});
    validate(mesh);
    const geometry::MeshCheck check = geometry::check_mesh(mesh);
    EXPECT_TRUE(check.is_watertight(mesh));
    EXPECT_EQ(check.components, 1);
    EXPECT_EQ(mesh.vertices.origin, dense.origin);
    const Attribute& normal = *find(mesh.vertices.attributes, "normal");
    for (int64_t i = 0; i < mesh.vertices.size(); ++i) {
        const Vec3d p = position(mesh.vertices, i);
        EXPECT_NEAR(length(p), kRadius, dense.grid.voxel);
        EXPECT_GT(dot(unit(p), Vec3d{normal.value(i, 0), normal.value(i, 1), normal.value(i, 2)}), 0.95);
        expect_ball_colour(mesh.vertices, i, dense.grid.voxel);
    }
    for (int64_t f = 0; f < mesh.faces(); ++f) {  // outwards
        const int32_t* t = mesh.triangles.data() + 3 * f;
        const Vec3d a = position(mesh.vertices, t[0]), b = position(mesh.vertices, t[1]),
                    c = position(mesh.vertices, t[2]);
        EXPECT_GE(dot(cross(b - a, c - a), a + b + c), 0);
    }
}

// A field whose nodes are further apart along one axis than along another.
TEST(ExportMesh, SpacingByAxis) {
    DenseField dense = test::empty_field({20, 33, 27}, {{-1, -1, -1}, {1, 1, 1}});
    const float voxel = dense.grid.voxel;
    test::set_density(dense, [&](Vec3f p) { return 8 + 20 * (0.6f - length(p)) / voxel; });
    for (double level : {0.1, 0.5, 0.9}) {
        const Mesh mesh = export_mesh(pack(dense), {.level = level});
        ASSERT_GT(mesh.faces(), 100);
        // The radius at which the density has the level, exact for a density that is linear along the radius.
        const double radius = 0.6 + (8 - density_of_opacity(dense, level)) * voxel / 20;
        for (int64_t i = 0; i < mesh.vertices.size(); ++i)
            EXPECT_NEAR(length(position(mesh.vertices, i)), radius, 0.03 * voxel * 3);
    }
}

TEST(ExportMesh, LevelBoxAndParts) {
    DenseField dense = some_ball();
    EXPECT_NEAR(opacity(density_of_opacity(dense, 0.3) + dense.density_shift, dense.voxel_ratio), 0.3, 1e-5);
    const Box<double> upper = {{0, 0, 300}, {1000, 1000, 1000}};
    const Mesh half = export_mesh(pack(dense), {.box = upper});
    EXPECT_TRUE(geometry::check_mesh(half).is_watertight(half));
    for (int64_t i = 0; i < half.vertices.size(); ++i)
        EXPECT_GT(half.vertices.world(i, 2), 300 - dense.grid.spacing(2));
    // A speck in a corner.
    const int64_t speck = dense.grid.index(2, 2, 2);
    dense.density[static_cast<size_t>(speck)] = 20;
    dense.occupied[static_cast<size_t>(speck >> 5)] |= 1u << (speck & 31);
    const Field field = pack(dense);
    EXPECT_EQ(geometry::check_mesh(export_mesh(field, {})).components, 2);
    EXPECT_EQ(geometry::check_mesh(export_mesh(field, {.least_part = 0.01})).components, 1);
    EXPECT_ERROR(export_mesh(field, {.level = 0}), bad_argument, "level");
    EXPECT_ERROR(export_mesh(field, {.level = 1}), bad_argument, "level");
    const Mesh none = export_mesh(pack(test::empty_field({8, 8, 8}, {{-1, -1, -1}, {1, 1, 1}})), {.least_part = 0.1});
    EXPECT_EQ(none.faces(), 0);
}

// The whole box is solid: the mesh closes it.
TEST(ExportMesh, ClosedAtTheBorderOfTheGrid) {
    DenseField dense = test::empty_field({9, 9, 9}, {{-1, -1, -1}, {1, 1, 1}});
    test::set_density(dense, [](Vec3f) { return 10.0f; });
    const Mesh mesh = export_mesh(pack(dense), {});
    EXPECT_TRUE(geometry::check_mesh(mesh).is_watertight(mesh));
}

TEST(ExportDensity, DimsLightAsStepsDo) {
    const DenseField dense = test::random_field({9, 10, 11}, {{0, 0, 0}, {1, 2, 3}}, 0.05f, 3);
    const Field field = pack(dense);
    const Array<float, 3> grid = export_density(field);
    EXPECT_EQ(grid.shape(), (std::array<int64_t, 3>{9, 10, 11}));
    const std::vector<uint32_t> visible = dilated(dense.grid, dense.occupied);
    for (int64_t i = 0; i < dense.grid.nodes(); ++i) {
        const bool seen = visible[static_cast<size_t>(i >> 5)] >> (i & 31) & 1;
        const double by_step = opacity(static_cast<double>(dense.density[static_cast<size_t>(i)]) + dense.density_shift,
                                       static_cast<double>(dense.step) * dense.voxel_ratio);
        const double by_length = 1 - std::exp(-static_cast<double>(grid.data()[i]) * dense.step * dense.grid.voxel);
        EXPECT_NEAR(by_length, seen ? by_step : 0, 1e-5);
    }
}

}  // namespace
}  // namespace stipple::radiance
