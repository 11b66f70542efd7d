// Scenes of transforms.json files: what is read, what is refused, and by which name.

#include <gtest/gtest.h>

#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/radiance/scene.h"
#include "tests/radiance/scene_files.h"
#include "tests/support/analytic_scene.h"
#include "tests/support/data_sets.h"
#include "tests/support/expect_error.h"

namespace stipple::radiance {
namespace {

using test::TemporaryFolder;

bool same_image(const Image& a, const Image& b) {
    return a.pixels.shape() == b.pixels.shape() &&
           std::memcmp(a.pixels.data(), b.pixels.data(), static_cast<size_t>(a.width() * a.height() * a.channels())) ==
               0;
}

TEST(BlenderScene, ComesBackAsItWasSaved) {
    const TemporaryFolder folder;
    const Scene saved = test::analytic_scene(20, 3, 2, 1);
    test::save_blender(folder.path(), saved);
    const Scene scene = load_scene(folder.path() + "/");
    EXPECT_EQ(scene.source, "blender");
    ASSERT_EQ(scene.train.size(), 3u);
    ASSERT_EQ(scene.test.size(), 2u);
    EXPECT_TRUE(scene.validation.empty());
    EXPECT_EQ(scene.listed_images, 5);
    EXPECT_TRUE(scene.has_alpha);
    EXPECT_FALSE(scene.alpha_is_unknown);
    EXPECT_EQ(scene.near, kBlenderNear);
    EXPECT_EQ(scene.far, kBlenderFar);
    EXPECT_FALSE(scene.box);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(same_image(scene.train[i].pixels, saved.train[i].pixels));
        EXPECT_EQ(scene.train[i].camera.to_world, saved.train[i].camera.to_world);
        EXPECT_NEAR(scene.train[i].camera.fx, saved.train[i].camera.fx, 1e-5);
        EXPECT_EQ(scene.train[i].camera.cx, 10);
        EXPECT_EQ(scene.train[i].file, folder.path() + "/" + saved.train[i].file);
    }
    SceneOptions options;
    options.train_only = true;
    std::filesystem::remove_all(folder / "test");
    EXPECT_TRUE(load_scene(folder.path(), options).test.empty());
    EXPECT_EQ(load_scene(folder.path(), options).listed_images, 5);
}

TEST(BlenderScene, IsTheSameForAnyNumberOfThreads) {
    const TemporaryFolder folder;
    test::save_blender(folder.path(), test::analytic_scene(16, 5, 1, 1));
    const int before = threads();
    set_threads(1);
    const Scene one = load_scene(folder.path());
    set_threads(3);
    const Scene three = load_scene(folder.path());
    set_threads(before);
    for (size_t i = 0; i < 5; ++i) {
        EXPECT_TRUE(same_image(one.train[i].pixels, three.train[i].pixels));
        EXPECT_EQ(one.train[i].file, three.train[i].file);
    }
}

TEST(BlenderScene, GreyAndColourBecomeOpaque) {
    const TemporaryFolder folder;
    Scene saved = test::analytic_scene(8, 3, 0, 1);
    test::save_blender(folder.path(), saved);
    Image grey(8, 8, 1), colour(8, 8, 3);
    for (int64_t i = 0; i < 64; ++i) grey.pixels.data()[i] = static_cast<uint8_t>(i);
    for (int64_t i = 0; i < 192; ++i) colour.pixels.data()[i] = static_cast<uint8_t>(i);
    io::save_png(folder / "train/r_0.png", grey, Overwrite::allow);
    io::save_png(folder / "train/r_1.png", colour, Overwrite::allow);
    io::save_png(folder / "train/r_2.png", colour, Overwrite::allow);
    const Scene scene = load_scene(folder.path());
    EXPECT_FALSE(scene.has_alpha);
    const uint8_t* a = scene.train[0].pixels.at(3, 2);
    EXPECT_TRUE(a[0] == 19 && a[1] == 19 && a[2] == 19 && a[3] == 255);
    const uint8_t* b = scene.train[1].pixels.at(3, 2);
    EXPECT_TRUE(b[0] == 57 && b[1] == 58 && b[2] == 59 && b[3] == 255);
}

TEST(BlenderScene, ErrorsNameTheFile) {
    const TemporaryFolder folder;
    const Scene saved = test::analytic_scene(16, 3, 1, 1);
    const auto fresh = [&] {
        std::filesystem::remove_all(folder.path());
        std::filesystem::create_directories(folder.path());
        test::save_blender(folder.path(), saved);
    };
    fresh();
    std::filesystem::remove(folder / "train/r_1.png");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "train/r_1.png: there is no such picture");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "transforms_train.json names it");
    fresh();
    test::write_file(folder / "train/r_2.png", "");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "train/r_2.png");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "the file is empty");
    fresh();
    const std::string whole = test::read_file(folder / "test/r_0.png");
    test::write_file(folder / "test/r_0.png", whole.substr(0, whole.size() / 2));
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "test/r_0.png: byte");
    fresh();
    test::write_file(folder / "train/r_0.png", "GIF89a, or so it says");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "neither a PNG nor a JPEG picture");
    fresh();
    test::write_file(folder / "transforms_train.json",
                     test::transforms_text(saved.train, "\"fl_x\": 20, \"w\": 32, \"h\": 16"));
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "train/r_0.png: 16 x 16 pixels, and");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "says 32 x 16");
    fresh();
    test::write_file(folder / "transforms_test.json", "{\"frames\": [");
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "transforms_test.json:1: column");
    std::filesystem::remove_all(folder.path());
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "there is no such folder");
    std::filesystem::create_directories(folder.path());
    EXPECT_ERROR(load_scene(folder.path()), bad_file, "no scene: neither transforms_train.json");
    test::write_file(folder / "file", "x");
    EXPECT_ERROR(load_scene(folder / "file"), bad_file, "a scene is a folder");
    SceneOptions options;
    options.reduce = 0;
    EXPECT_ERROR(load_scene(folder.path(), options), bad_argument, "reduce must be 1 to 64, got 0");
    options.reduce = 17;
    fresh();
    EXPECT_ERROR(load_scene(folder.path(), options), bad_argument, "cannot be reduced by 17");
}

TEST(BlenderScene, ReducesByMeansWithAlpha) {
    const TemporaryFolder folder;
    Scene saved = test::analytic_scene(20, 1, 0, 1);
    saved.train[0].pixels = Image(7, 4, 4);
    Image& pixels = saved.train[0].pixels;
    std::memset(pixels.pixels.data(), 0, 7 * 4 * 4);
    const uint8_t red[4] = {200, 0, 0, 255}, green[4] = {0, 100, 0, 51};
    std::memcpy(pixels.at(0, 0), red, 4);
    std::memcpy(pixels.at(1, 1), green, 4);
    test::save_blender(folder.path(), saved);
    SceneOptions options;
    options.reduce = 2;
    const Scene scene = load_scene(folder.path(), options);
    const Photograph& photograph = scene.train[0];
    ASSERT_EQ(photograph.pixels.width(), 3);
    ASSERT_EQ(photograph.pixels.height(), 2);
    const uint8_t* p = photograph.pixels.at(0, 0);
    EXPECT_EQ(p[0], 167);  // 200 * 255 / 306
    EXPECT_EQ(p[1], 17);   // 100 * 51 / 306
    EXPECT_EQ(p[3], 77);   // 306 / 4
    EXPECT_EQ(photograph.pixels.at(1, 0)[3], 0);
    // Rays through the same places: the camera of 7 x 4 pixels in units of two pixels.
    EXPECT_EQ(photograph.camera.width, 3);
    EXPECT_EQ(photograph.camera.cx, 1.75f);
    EXPECT_EQ(photograph.camera.cy, 1);
}

TEST(TransformsScene, SplitsByNameAndFindsDepths) {
    const TemporaryFolder folder;
    const Scene saved = test::analytic_scene(12, 10, 0, 1);
    test::save_pictures(folder.path(), saved.train);
    test::write_file(folder / "transforms.json", test::transforms_text(saved.train));
    const Scene scene = load_scene(folder.path());
    EXPECT_EQ(scene.source, "transforms");
    ASSERT_EQ(scene.train.size(), 8u);
    ASSERT_EQ(scene.test.size(), 2u);
    EXPECT_EQ(scene.test[1].file, folder / "train/r_8.png");
    // All cameras look at the origin from 4 away: Blender's depths.
    EXPECT_NEAR(scene.near, 2, 1e-4);
    EXPECT_NEAR(scene.far, 6, 1e-4);
    SceneOptions options;
    options.test_every = 0;
    EXPECT_EQ(load_scene(folder.path(), options).train.size(), 10u);
    options.test_every = 1;
    EXPECT_EQ(load_scene(folder.path(), options).train.size(), 1u);
    options.test_every = -1;
    EXPECT_ERROR(load_scene(folder.path(), options), bad_argument, "-1");
}

TEST(TransformsScene, OneViewNotSquareFarAway) {
    const TemporaryFolder folder;
    Scene saved = test::analytic_scene(12, 1, 0, 1);
    Camera& camera = saved.train[0].camera;
    camera.width = 20;
    saved.train[0].pixels = Image(20, 12, 4);
    std::memset(saved.train[0].pixels.pixels.data(), 255, 20 * 12 * 4);
    camera.to_world[3] = 500000.5f;
    test::save_pictures(folder.path(), saved.train);
    test::write_file(
        folder / "transforms.json",
        test::transforms_text(saved.train, "\"fl_x\": 30, \"fl_y\": 40, \"cx\": 9, \"cy\": 5, \"w\": 20, \"h\": 12"));
    const Scene scene = load_scene(folder.path());
    ASSERT_EQ(scene.train.size(), 1u);
    EXPECT_TRUE(scene.test.empty());
    const Camera& found = scene.train[0].camera;
    EXPECT_EQ(found.width, 20);
    EXPECT_EQ(found.height, 12);
    EXPECT_EQ(found.fy, 40);
    EXPECT_EQ(found.cx, 9);
    EXPECT_EQ(scene.origin[0], std::round(500000.5));
    EXPECT_EQ(scene.origin[0] + found.to_world[3], 500000.5);
    EXPECT_EQ(scene.origin[1], 0);
    EXPECT_EQ(scene.near, kBlenderNear);
}

TEST(BlenderScene, ReadsPublishedScenes) {
    STIPPLE_NEEDS_DATA("nerf_synthetic_small/lego_200");
    const Scene small = load_scene(*test::data_file("nerf_synthetic_small/lego_200"));
    EXPECT_GE(small.train.size(), 20u);
    EXPECT_EQ(small.test.size(), 10u);
    EXPECT_TRUE(small.has_alpha);
    EXPECT_EQ(small.train[0].camera.width, 200);
    EXPECT_NEAR(small.train[0].camera.fx, 100 / std::tan(0.5 * 0.6911112070083618), 1e-3);
    STIPPLE_NEEDS_DATA("nerf_synthetic/mic");
    SceneOptions options;
    options.reduce = 8;
    options.train_only = true;
    for (const char* name : {"nerf_synthetic/lego", "nerf_synthetic/mic"}) {
        const Scene scene = load_scene(*test::data_file(name), options);
        EXPECT_EQ(scene.train.size(), 100u) << name;
        EXPECT_GE(scene.listed_images, 127) << name;
        EXPECT_EQ(scene.train[0].camera.width, 100) << name;
        EXPECT_EQ(scene.origin, (std::array<double, 3>{})) << name;
    }
}

}  // namespace
}  // namespace stipple::radiance
