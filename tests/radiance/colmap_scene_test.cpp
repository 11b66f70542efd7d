// Scenes of COLMAP models: the same rays as transforms.json gives, box and depths by the points, pictures as stored.

#include <gtest/gtest.h>

#include <cstring>

#include "stipple/core/rng.h"
#include "stipple/radiance/march/ray.h"
#include "stipple/radiance/scene.h"
#include "tests/radiance/scene_files.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/data_sets.h"
#include "tests/support/expect_error.h"

namespace stipple::radiance {
namespace {

using test::TemporaryFolder;

std::string file_name_of(const Photograph& photograph) {
    return std::filesystem::path(photograph.file).filename().string();
}

/// Pictures in images/, the model where `model_folder` says.
void save_colmap(const std::string& folder, const Scene& scene, io::ColmapForm form,
                 const std::string& model_folder = "sparse/0") {
    io::ColmapModel model = to_colmap(scene.train, scene.origin, file_name_of);
    for (size_t i = 0; i < static_cast<size_t>(scene.sparse_points.size()); ++i) {
        io::ColmapPoint point;
        point.id = i + 1;
        for (int axis = 0; axis < 3; ++axis)
            point.position[static_cast<size_t>(axis)] = scene.sparse_points.world(static_cast<int64_t>(i), axis);
        point.color = {10, 20, static_cast<uint8_t>(i)};
        model.points.push_back(point);
    }
    std::filesystem::create_directories(folder + "/" + model_folder);
    std::filesystem::create_directories(folder + "/images");
    for (const Photograph& photograph : scene.train)
        io::save_png(folder + "/images/" + file_name_of(photograph), photograph.pixels, Overwrite::allow);
    if (form == io::ColmapForm::text)
        io::write_colmap_text(folder + "/" + model_folder, model, Overwrite::allow);
    else
        io::write_colmap_binary(folder + "/" + model_folder, model, Overwrite::allow);
}

void expect_same_rays(const Camera& a, const Camera& b, float tolerance) {
    ASSERT_EQ(a.width, b.width);
    ASSERT_EQ(a.height, b.height);
    const CameraView view_a = view_of(a), view_b = view_of(b);
    for (const int x : {0, a.width / 3, a.width - 1})
        for (const int y : {0, a.height / 2, a.height - 1}) {
            const Ray ray_a = camera_ray(view_a, x, y), ray_b = camera_ray(view_b, x, y);
            for (int axis = 0; axis < 3; ++axis) {
                ASSERT_NEAR(ray_a.origin[axis], ray_b.origin[axis], tolerance);
                ASSERT_NEAR(ray_a.direction[axis], ray_b.direction[axis], tolerance);
            }
        }
}

PointCloud points_in_ball(int64_t n, double radius) {
    PointCloud cloud(n);
    const Rng rng(5);
    for (int64_t i = 0; i < n; ++i) {
        Vec3d p;
        for (int axis = 0; axis < 3; ++axis) p[axis] = rng.normal(static_cast<uint64_t>(3 * i + axis));
        store(unit(p) * radius, cloud.positions.data() + 3 * i);
    }
    return cloud;
}

TEST(ColmapScene, GivesTheRaysOfTransforms) {
    Scene saved = test::analytic_scene(20, 9, 0, 3);
    for (const auto form : {io::ColmapForm::text, io::ColmapForm::binary}) {
        const TemporaryFolder folder;
        save_colmap(folder.path(), saved, form);
        SceneOptions options;
        options.test_every = 0;
        const Scene scene = load_scene(folder.path(), options);
        EXPECT_EQ(scene.source, form == io::ColmapForm::text ? "colmap text" : "colmap binary");
        ASSERT_EQ(scene.train.size(), saved.train.size());
        for (size_t i = 0; i < scene.train.size(); ++i) {
            expect_same_rays(scene.train[i].camera, saved.train[i].camera, 1e-5f);
            EXPECT_EQ(std::memcmp(scene.train[i].pixels.pixels.data(), saved.train[i].pixels.pixels.data(), 1600), 0);
        }
        EXPECT_FALSE(scene.box);  // no points
        EXPECT_NEAR(scene.near, saved.near, 0.02f * saved.near);
        EXPECT_NEAR(scene.far, saved.far, 0.02f * saved.far);
        options.test_every = 4;
        EXPECT_EQ(load_scene(folder.path(), options).test.size(), 3u);
    }
}

TEST(ColmapScene, GivesTheRaysOfLego) {
    STIPPLE_NEEDS_DATA("nerf_synthetic_small/lego_200");
    const Scene saved = load_scene(*test::data_file("nerf_synthetic_small/lego_200"));
    for (const auto form : {io::ColmapForm::text, io::ColmapForm::binary}) {
        const TemporaryFolder folder(test::Where::memory);
        save_colmap(folder.path(), saved, form, "sparse");
        SceneOptions options;
        options.test_every = 0;
        const Scene scene = load_scene(folder.path(), options);
        ASSERT_EQ(scene.train.size(), saved.train.size());
        for (const Photograph& photograph : scene.train) {
            const auto same = std::find_if(saved.train.begin(), saved.train.end(), [&](const Photograph& other) {
                return file_name_of(other) == file_name_of(photograph);
            });
            ASSERT_NE(same, saved.train.end());
            expect_same_rays(photograph.camera, same->camera, 1e-5f);
        }
    }
}

TEST(ColmapScene, BoxAndDepthsLeaveStraysOut) {
    const TemporaryFolder folder;
    Scene saved = test::analytic_scene(20, 6, 0, 3);
    saved.sparse_points = points_in_ball(2000, 1.0);
    for (int64_t i = 0; i < 6; ++i) saved.sparse_points.positions.data()[3 * i + i % 3] = i % 2 == 0 ? 1e6f : -1e6f;
    saved.sparse_points.positions.data()[3 * 7 + 2] = 3.5f;  // right before a camera
    save_colmap(folder.path(), saved, io::ColmapForm::binary);
    const Scene scene = load_scene(folder.path());
    ASSERT_TRUE(scene.box);
    for (int axis = 0; axis < 3; ++axis) {
        EXPECT_NEAR(scene.box->low[axis], -1.18, 0.03);
        EXPECT_NEAR(scene.box->high[axis], 1.18, 0.03);
    }
    EXPECT_NEAR(scene.near, 0.9 * 3, 0.05);
    EXPECT_NEAR(scene.far, 1.1 * 5, 0.05);
    EXPECT_EQ(scene.sparse_points.size(), 2000);
    ASSERT_EQ(scene.sparse_points.attributes.size(), 1u);
    EXPECT_EQ(scene.sparse_points.attributes[0].value(9, 2), 9);
}

TEST(ColmapScene, TracksTellWhoSeesAPoint) {
    const TemporaryFolder folder;
    Scene saved = test::analytic_scene(20, 3, 0, 3);
    save_colmap(folder.path(), saved, io::ColmapForm::text);
    io::ColmapModel model = io::load_colmap(folder / "sparse/0", io::ColmapForm::text);
    // Ten points at depth 2.5 of the second camera; the others are closer to them, and do not see them.
    const auto pose = io::pose_of(model.images[1]);
    for (uint64_t i = 0; i < 10; ++i) {
        io::ColmapPoint point;
        point.id = i + 1;
        for (size_t axis = 0; axis < 3; ++axis)
            point.position[axis] =
                pose[4 * axis + 3] - 2.5 * pose[4 * axis + 2] + 0.01 * static_cast<double>(i) * pose[4 * axis];
        point.track_begin = static_cast<int64_t>(model.track.size());
        model.track.push_back(model.images[1].id);
        model.track.push_back(4000);  // an image that is not registered
        model.points.push_back(point);
    }
    io::write_colmap_text(folder / "sparse/0", model, Overwrite::allow);
    const Scene scene = load_scene(folder.path());
    EXPECT_NEAR(scene.near, 0.9 * 2.5, 1e-4);
    EXPECT_NEAR(scene.far, 1.1 * 2.5, 1e-4);
    ASSERT_TRUE(scene.box);  // of points in a row: some room on all sides
    for (int axis = 0; axis < 3; ++axis) EXPECT_GT(scene.box->extent(axis), 1e-4);
}

TEST(ColmapScene, CamerasInTheBoxAndFarAway) {
    const TemporaryFolder folder;
    Scene saved = test::analytic_scene(20, 4, 0, 3);
    saved.sparse_points = points_in_ball(500, 30);  // all about the cameras
    saved.sparse_points.origin = saved.origin = {4e5, 5.2e6, 0};
    save_colmap(folder.path(), saved, io::ColmapForm::text);
    const Scene scene = load_scene(folder.path());
    EXPECT_NEAR(scene.origin[0], 4e5, 5);
    EXPECT_NEAR(scene.origin[1], 5.2e6, 5);
    EXPECT_EQ(scene.origin[2], 0);
    ASSERT_TRUE(scene.box);
    EXPECT_LT(scene.box->low[0], -25);
    EXPECT_GT(scene.box->high[0], 25);
    EXPECT_GT(scene.near, 0);
    EXPECT_LT(scene.far, 45);
    const auto& found = scene.train[0].camera.to_world;
    const auto& was = saved.train[1].camera.to_world;  // image 0 is the test image
    for (size_t axis = 0; axis < 3; ++axis)
        EXPECT_NEAR(scene.origin[axis] + found[4 * axis + 3], saved.origin[axis] + was[4 * axis + 3], 1e-6);
}

TEST(ColmapScene, TakesTheLargestModel) {
    const TemporaryFolder folder;
    Scene saved = test::analytic_scene(12, 6, 0, 3);
    save_colmap(folder.path(), saved, io::ColmapForm::binary, "sparse/1");
    saved.train.pop_back();
    saved.train.pop_back();
    save_colmap(folder.path(), saved, io::ColmapForm::text, "sparse/0");
    io::save_png(folder / "images/not_registered.png", saved.train[0].pixels, Overwrite::allow);
    const Scene scene = load_scene(folder.path());
    EXPECT_EQ(scene.train.size() + scene.test.size(), 6u);
    EXPECT_EQ(scene.source, "colmap binary");
    EXPECT_EQ(scene.listed_images, 7);
}

TEST(ColmapScene, PicturesCountAsStored) {
    // A JPEG of 24 x 16 pixels whose EXIF tag says that it is to be turned by a quarter.
    const TemporaryFolder folder;
    Image image(24, 16, 3);
    for (int64_t y = 0; y < 16; ++y)
        for (int64_t x = 0; x < 24; ++x) std::memset(image.at(x, y), x < 8 ? 200 : 40, 3);
    MemorySink sink;
    io::write_jpeg(image, sink, 100);
    std::string bytes(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size());
    const std::string exif(
        "\xff\xe1\0\x22"
        "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0",
        36);
    bytes.insert(2, exif);
    std::filesystem::create_directories(folder / "images");
    test::write_file(folder / "images/a.jpg", bytes);
    ASSERT_EQ(io::load_image(folder / "images/a.jpg").width(), 16);
    io::ColmapModel model;
    model.cameras.push_back({1, io::ColmapCameraModel::pinhole, {24, 16, 20, 20, 12, 8}});
    model.images.push_back({1, 1, {1, 0, 0, 0}, {}, "a.jpg"});
    io::write_colmap_text(folder.path(), model, Overwrite::allow);
    const Scene stored = load_scene(folder.path());
    EXPECT_EQ(stored.train[0].pixels.width(), 24);
    EXPECT_NEAR(stored.train[0].pixels.at(2, 8)[0], 200, 4);
    model.cameras[0].lens = {16, 24, 20, 20, 8, 12};
    io::write_colmap_text(folder.path(), model, Overwrite::allow);
    const Scene upright = load_scene(folder.path());
    EXPECT_EQ(upright.train[0].pixels.height(), 24);
    EXPECT_NEAR(upright.train[0].pixels.at(8, 2)[0], 200, 4);
    model.cameras[0].lens.width = 17;
    io::write_colmap_text(folder.path(), model, Overwrite::allow);
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "images/a.jpg: 24 x 16 pixels, and");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "cameras.txt says 17 x 24");
}

TEST(ColmapScene, ErrorsNameTheFile) {
    const TemporaryFolder folder;
    const Scene saved = test::analytic_scene(12, 2, 0, 3);
    save_colmap(folder.path(), saved, io::ColmapForm::binary);
    std::filesystem::remove(folder / "images/r_1.png");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "images/r_1.png: there is no such picture, and");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "sparse/0/images.bin names it");
    std::filesystem::resize_file(folder / "sparse/0/images.bin", 40);
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "sparse/0/images.bin: byte");
    io::ColmapModel none;
    io::write_colmap_binary(folder / "sparse/0", none, Overwrite::allow);
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "sparse/0: the model has no registered image");
    std::filesystem::remove(folder / "sparse/0/points3D.bin");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "points3D.bin");
}

}  // namespace
}  // namespace stipple::radiance
