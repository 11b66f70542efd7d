// Removing distortion, against a chequered plane that is drawn through the lens itself.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "stipple/radiance/scene.h"
#include "stipple/radiance/scene/pixels.h"
#include "tests/radiance/scene_files.h"
#include "tests/support/expect_error.h"

namespace stipple::radiance {
namespace {

double chequer_at(double x, double y) {
    return (static_cast<int64_t>(std::floor(x / 0.1)) + static_cast<int64_t>(std::floor(y / 0.1))) & 1 ? 220 : 30;
}

/// The point of the plane at distance 1 that appears at (to_x, to_y), by Newton's method from numeric derivatives.
bool plane_point(const io::Lens& lens, double to_x, double to_y, double& x, double& y) {
    x = to_x, y = to_y;
    for (int step = 0; step < 50; ++step) {
        double a, b, ax, bx, ay, by;
        constexpr double kStep = 1e-6;
        if (!distorted_place(lens, x, y, a, b)) return false;
        distorted_place(lens, x + kStep, y, ax, bx);
        distorted_place(lens, x, y + kStep, ay, by);
        const double j[4] = {(ax - a) / kStep, (ay - a) / kStep, (bx - b) / kStep, (by - b) / kStep};
        const double determinant = j[0] * j[3] - j[1] * j[2], ea = to_x - a, eb = to_y - b;
        if (std::abs(ea) + std::abs(eb) < 1e-9) return true;
        x += (j[3] * ea - j[1] * eb) / determinant;
        y += (j[0] * eb - j[2] * ea) / determinant;
    }
    return false;
}

/// The plane through the lens, 4 x 4 samples a pixel; with or without its distortion.
Image chequered(const io::Lens& lens, bool distorted) {
    Image image(lens.width, lens.height, 4);
    for (int64_t row = 0; row < lens.height; ++row)
        for (int64_t column = 0; column < lens.width; ++column) {
            double sum = 0;
            for (int s = 0; s < 16; ++s) {
                const double u = static_cast<double>(column) + (s % 4 + 0.5) / 4,
                             v = static_cast<double>(row) + (s / 4 + 0.5) / 4;
                double x = (u - lens.cx) / lens.fx, y = (v - lens.cy) / lens.fy;
                const bool found = !distorted || plane_point(lens, x, y, x, y);
                EXPECT_TRUE(found) << u << " " << v;
                sum += chequer_at(x, y) / 16;
            }
            std::memset(image.at(column, row), static_cast<int>(std::lround(sum)), 3);
            image.at(column, row)[3] = 255;
        }
    return image;
}

/// A lens that bends straight lines by pixels: without its correction the mean difference is 40 and more.
io::Lens bending_lens(double k1, double k2, double p1, double p2) {
    return {160, 120, 130, 135, 83, 57, k1, k2, p1, p2};
}

TEST(Undistort, MakesChequersStraight) {
    const io::Lens lenses[] = {bending_lens(-0.2, 0, 0, 0), bending_lens(0.15, 0, 0, 0),
                               bending_lens(-0.25, 0.08, 0, 0), bending_lens(-0.15, 0.02, 0.01, -0.008)};
    for (const io::Lens& lens : lenses) {
        SCOPED_TRACE(lens.k1);
        const Image bent = chequered(lens, true), straight = chequered(lens, false), found = undistorted(bent, lens);
        double difference = 0, before = 0;
        int64_t known = 0, flat = 0;
        for (int64_t y = 2; y + 2 < lens.height; ++y)
            for (int64_t x = 2; x + 2 < lens.width; ++x) {
                if (found.at(x, y)[3] == 0) continue;
                ++known;
                const int is = *found.at(x, y), should = *straight.at(x, y);
                difference += std::abs(is - should);
                before += std::abs(*bent.at(x, y) - should);
                // Within a square, two pixels off its edges, the colour is exact.
                bool inside = true;
                for (int64_t dy = -2; dy <= 2; ++dy)
                    for (int64_t dx = -2; dx <= 2; ++dx) inside &= *straight.at(x + dx, y + dy) == should;
                if (!inside || (should != 30 && should != 220)) continue;
                ++flat;
                EXPECT_LE(std::abs(is - should), 1) << x << " " << y;
            }
        EXPECT_GT(known, 15000);
        EXPECT_GT(flat, 4000);
        EXPECT_LT(difference / static_cast<double>(known), 8);
        EXPECT_GT(before / static_cast<double>(known), 3 * difference / static_cast<double>(known));
    }
}

TEST(Undistort, IsTransparentWhereThePhotographEnds) {
    const io::Lens lens = bending_lens(0.3, 0, 0, 0);  // corners come from outside
    Image image(160, 120, 4);
    std::memset(image.pixels.data(), 255, 160 * 120 * 4);
    const Image found = undistorted(image, lens);
    int64_t outside = 0;
    for (int64_t row = 0; row < 120; ++row)
        for (int64_t column = 0; column < 160; ++column) {
            double x = (static_cast<double>(column) + 0.5 - lens.cx) / lens.fx,
                   y = (static_cast<double>(row) + 0.5 - lens.cy) / lens.fy;
            distorted_place(lens, x, y, x, y);
            const double u = lens.fx * x + lens.cx, v = lens.fy * y + lens.cy;
            const bool is_inside = u >= 0 && v >= 0 && u <= 160 && v <= 120;
            ASSERT_EQ(found.at(column, row)[3], is_inside ? 255 : 0);
            ASSERT_EQ(found.at(column, row)[0], is_inside ? 255 : 0);
            outside += !is_inside;
        }
    EXPECT_GT(outside, 500);
    EXPECT_EQ(found.at(0, 0)[3], 0);
}

TEST(Undistort, DoesNotFoldBack) {
    // x (1 - r^2) turns around at r = 0.577 and is back in the picture at r = 1.
    const io::Lens lens = bending_lens(-1, 0, 0, 0);
    Image image(160, 120, 4);
    std::memset(image.pixels.data(), 255, 160 * 120 * 4);
    const Image found = undistorted(image, lens);
    EXPECT_EQ(found.at(83, 57)[3], 255);
    EXPECT_EQ(found.at(159, 119)[3], 0);
    EXPECT_EQ(found.at(159, 57)[3], 0);  // r = 0.59
    EXPECT_EQ(found.at(150, 57)[3], 255);
}

TEST(Undistort, ScenesKnowWhatIsUnknown) {
    const test::TemporaryFolder folder;
    const io::Lens lens = bending_lens(0.15, 0, 0, 0);
    std::filesystem::create_directories(folder / "images");
    io::save_png(folder / "images/a.png", chequered(lens, true), Overwrite::refuse);
    io::ColmapModel model;
    model.cameras.push_back({1, io::ColmapCameraModel::opencv, lens});
    model.images.push_back({1, 1, {1, 0, 0, 0}, {}, "a.png"});
    io::write_colmap_binary(folder.path(), model, Overwrite::refuse);
    const Scene scene = load_scene(folder.path());
    EXPECT_TRUE(scene.has_alpha);
    EXPECT_TRUE(scene.alpha_is_unknown);
    EXPECT_EQ(scene.train[0].pixels.at(0, 0)[3], 0);
    EXPECT_EQ(scene.train[0].camera.fx, 130);
    EXPECT_EQ(scene.train[0].camera.cx, 83);
    // The same lens by transforms.json.
    std::vector<Photograph> photographs(1);
    photographs[0].file = "images/a.png";
    photographs[0].camera = scene.train[0].camera;
    test::write_file(
        folder / "transforms.json",
        test::transforms_text(photographs, "\"fl_x\": 130, \"fl_y\": 135, \"cx\": 83, \"cy\": 57, \"k1\": 0.15"));
    const Scene same = load_scene(folder.path());
    EXPECT_EQ(same.source, "transforms");
    EXPECT_EQ(std::memcmp(same.train[0].pixels.pixels.data(), scene.train[0].pixels.pixels.data(), 160 * 120 * 4), 0);
}

}  // namespace
}  // namespace stipple::radiance
