#include "stipple/radiance/camera_path.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/radiance/march/ray.h"
#include "stipple/radiance/view_images.h"
#include "tests/support/expect_error.h"
#include "tests/support/radiance_fields.h"

namespace stipple::radiance {
namespace {

Vec3d position_of(const Camera& camera) {
    return {camera.to_world[3], camera.to_world[7], camera.to_world[11]};
}
Vec3d axis_of(const Camera& camera, size_t column) {
    return {camera.to_world[column], camera.to_world[4 + column], camera.to_world[8 + column]};
}

// Right-handed, of unit length, and the middle of the picture sees the aim.
void expect_looks_at(const Camera& camera, Vec3d aim) {
    const Vec3d right = axis_of(camera, 0), up = axis_of(camera, 1), back = axis_of(camera, 2);
    EXPECT_NEAR(length(right), 1, 1e-6);
    EXPECT_NEAR(length(up), 1, 1e-6);
    EXPECT_NEAR(length(cross(right, up) - back), 0, 1e-6);
    EXPECT_NEAR(length(unit(position_of(camera) - aim) - back), 0, 1e-6);
}

TEST(CameraPath, LooksWhereItIsTold) {
    const Field field = pack(test::ball_field(8, 0.5f, 3, 40));
    const Camera camera = look_at(field, {3, -2, 1}, {0.5, 0, 0.2}, {0, 0, 1});
    expect_looks_at(camera, {0.5, 0, 0.2});
    EXPECT_GT(axis_of(camera, 1).z, 0.5);  // upright
    EXPECT_NEAR(axis_of(camera, 0).z, 0, 1e-6);
    EXPECT_EQ(camera.width, 40);  // as the field's
    EXPECT_FLOAT_EQ(camera.fx, field.cameras[0].fx);
    const Camera wide = look_at(field, {3, -2, 1}, {0, 0, 0}, {0, 0, 1}, {100, 50, 90});
    EXPECT_EQ(wide.width, 100);
    EXPECT_EQ(wide.height, 50);
    EXPECT_NEAR(wide.fx, 50, 1e-4);                                               // 90 degrees
    expect_looks_at(look_at(field, {0, 0, 3}, {0, 0, 0}, {0, 0, 1}), {0, 0, 0});  // along up
    EXPECT_ERROR(look_at(field, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}), bad_argument, "no direction");
}

TEST(CameraPath, OrbitGoesAround) {
    DenseField dense = test::ball_field(8, 0.5f, 0, 40);
    for (int i = 0; i < 5; ++i)  // all 4 away, 0.5 radians up
        dense.cameras.push_back(
            test::camera_at({4 * std::cos(0.5) * std::cos(i), 4 * std::cos(0.5) * std::sin(i), 4 * std::sin(0.5)},
                            {0, 0, 0}, 40, 40, 40));
    const Field field = pack(dense);
    EXPECT_NEAR(length(up_of(field) - Vec3d{0, 0, 1}), 0, 0.3);
    const std::vector<Camera> path = orbit(field, 8, NAN);
    ASSERT_EQ(path.size(), 8u);
    Vec3d sum;
    for (const Camera& camera : path) {
        expect_looks_at(camera, {0, 0, 0});
        EXPECT_NEAR(length(position_of(camera)), 4, 1e-5);
        EXPECT_NEAR(dot(unit(position_of(camera)), up_of(field)), std::sin(0.5), 0.1);
        sum = sum + 0.125 * position_of(camera);
    }
    EXPECT_NEAR(length(cross(sum, up_of(field))), 0, 1e-5);  // evenly around the axis
    for (const Camera& camera : orbit(field, 3, -20))
        EXPECT_NEAR(dot(unit(position_of(camera)), up_of(field)), std::sin(-20 * 3.14159265 / 180), 1e-5);
    dense.cameras.clear();
    EXPECT_EQ(orbit(pack(dense), 2, NAN).size(), 2u);
    EXPECT_EQ(orbit(pack(dense), 2, NAN)[0].width, 800);
    EXPECT_ERROR(orbit(field, 0, NAN), bad_argument, "0 frames");
}

// Cameras of a scene whose y points down, as those of structure from motion often do.
TEST(CameraPath, UpIsThatOfTheCameras) {
    DenseField dense = test::ball_field(8, 0.5f, 0, 40);
    for (int i = 0; i < 6; ++i) {
        Camera camera = test::camera_at({4 * std::cos(i), 4 * std::sin(i), 0.2}, {0, 0, 0}, 40, 40, 40);
        for (size_t c = 0; c < 4; ++c) {  // turned: z becomes -y, y becomes z
            const float y = camera.to_world[4 + c], z = camera.to_world[8 + c];
            camera.to_world[4 + c] = -z, camera.to_world[8 + c] = y;
        }
        dense.cameras.push_back(camera);
    }
    EXPECT_EQ(up_of(pack(dense)).y, -1);
}

TEST(ViewImages, ValuesToBytes) {
    RenderedView view;
    view.colour = Array<float, 3>({1, 2, 3});
    view.normal = Array<float, 3>({1, 2, 3});
    view.alpha = Array<float, 3>({1, 2, 1});
    view.depth = Array<float, 3>({1, 2, 1});
    const float colours[] = {-1, 0.5f, 2, 0, 1, 0.25f}, normals[] = {0, 0, -1, 0, 0, 0};
    std::copy(colours, colours + 6, view.colour.data());
    std::copy(normals, normals + 6, view.normal.data());
    view.alpha.data()[0] = 1, view.alpha.data()[1] = 0.5f;
    view.depth.data()[0] = 3, view.depth.data()[1] = INFINITY;
    const Image colour = colour_image(view), normal = normal_image(view), alpha = alpha_image(view);
    const uint8_t expected[] = {0, 128, 255, 0, 255, 64}, expected_normal[] = {128, 128, 0, 0, 0, 0};
    EXPECT_TRUE(std::equal(expected, expected + 6, colour.pixels.data()));
    EXPECT_TRUE(std::equal(expected_normal, expected_normal + 6, normal.pixels.data()));
    EXPECT_EQ(*alpha.at(0, 0), 255);
    EXPECT_EQ(*alpha.at(1, 0), 128);
    EXPECT_EQ(depth_range(view), (std::pair<float, float>{3, 3}));
}

TEST(ViewImages, SummaryCounts) {
    const DenseField dense = test::random_field({9, 10, 11}, {{0, 0, 0}, {1, 1, 1}}, 0.1f, 2);
    const Field field = pack(dense);
    int64_t occupied = 0;
    for (int64_t i = 0; i < dense.grid.nodes(); ++i) occupied += bit_of(dense.occupied.data(), i);
    const FieldSummary summary = summarise(field);
    EXPECT_EQ(summary.nodes, 990);
    EXPECT_EQ(summary.occupied_nodes, occupied);
    EXPECT_EQ(summary.bricks, 3 * 3 * 3);
    EXPECT_EQ(summary.stored_bricks, field.stored_bricks());
    EXPECT_GT(summary.packed_bytes, summary.stored_bricks * kBrickNodes * 28);
}

}  // namespace
}  // namespace stipple::radiance
