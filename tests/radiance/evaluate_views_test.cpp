#include <gtest/gtest.h>

#include <cmath>

#include "stipple/radiance/evaluate.h"
#include "tests/support/expect_error.h"
#include "tests/support/radiance_fields.h"

namespace stipple::radiance {
namespace {

// The render of a camera, rounded, as a photograph.
Photograph photograph_of(const DenseField& dense, const Camera& camera, uint8_t alpha = 255) {
    const RenderedView view = Renderer(pack(dense), Device{}).render(camera);
    Photograph photo{"view.png", Image(camera.width, camera.height, 4), camera};
    for (int64_t i = 0; i < view.alpha.elements(); ++i) {
        for (int64_t c = 0; c < 3; ++c)
            photo.pixels.pixels.data()[4 * i + c] =
                static_cast<uint8_t>(std::lround(255 * view.colour.data()[3 * i + c]));
        photo.pixels.pixels.data()[4 * i + 3] = alpha;
    }
    return photo;
}

TEST(EvaluateViews, ARoundedRenderIsNearlyPerfect) {
    const DenseField dense = test::ball_field(24, 0.7f, 2, 32);
    std::vector<Photograph> photos;
    for (const Camera& camera : dense.cameras) photos.push_back(photograph_of(dense, camera));
    Renderer renderer(pack(dense), Device{});
    int64_t done = 0;
    const ViewScores scores = evaluate(renderer, photos, dense.background, false, [&](int64_t n) { done = n; });
    EXPECT_EQ(done, 2);
    ASSERT_EQ(scores.views.size(), 2u);
    EXPECT_EQ(scores.views[0].file, "view.png");
    EXPECT_GT(scores.psnr, 55);
    EXPECT_GT(scores.ssim, 0.999);
    EXPECT_NEAR(scores.psnr, (scores.views[0].psnr + scores.views[1].psnr) / 2, 1e-9);
}

TEST(EvaluateViews, TruthIsCompositedInFloat) {
    Photograph photo{"a.png", Image(1, 1, 4), {}};
    const uint8_t pixel[] = {255, 100, 0, 51};
    std::copy(pixel, pixel + 4, photo.pixels.pixels.data());
    const Array<float, 3> white = composited(photo, Background::white), black = composited(photo, Background::black);
    for (int c = 0; c < 3; ++c) {
        EXPECT_NEAR(white.data()[c], pixel[c] / 255.0 * 0.2 + 0.8, 1e-6);
        EXPECT_NEAR(black.data()[c], pixel[c] / 255.0 * 0.2, 1e-6);
    }
}

TEST(EvaluateViews, KnownError) {
    // An empty field on black against a constant: MSE is its square.
    DenseField dense = test::empty_field({4, 4, 4}, {{0, 0, 0}, {1, 1, 1}});
    dense.background = Background::black;
    std::vector<Photograph> photos;
    photos.push_back({"a.png", Image(8, 4, 4), test::camera_at({3, 0, 0}, {0, 0, 0}, 8, 4, 8)});
    Photograph& photo = photos[0];
    for (int64_t i = 0; i < 8 * 4 * 4; ++i) photo.pixels.pixels.data()[i] = i % 4 == 3 ? 255 : 51;
    Renderer renderer(pack(dense), Device{});
    const ViewScores scores = evaluate(renderer, photos, dense.background);
    EXPECT_NEAR(scores.psnr, -10 * std::log10(0.04), 1e-4);
    EXPECT_TRUE(std::isnan(scores.ssim));  // too small for its window
    for (int64_t i = 3; i < 8 * 4 * 4; i += 8)
        photo.pixels.pixels.data()[i] = 0;  // of every other pixel nothing is known
    EXPECT_NEAR(evaluate(renderer, photos, dense.background, true).psnr, -10 * std::log10(0.02), 1e-4);
    photo.camera.width = 9;
    EXPECT_ERROR(evaluate(renderer, photos, dense.background), bad_argument, "8 x 4 pixels, its camera has 9 x 4");
    EXPECT_ERROR(evaluate(renderer, {}, dense.background), bad_argument, "no photographs");
}

TEST(EvaluateViews, CamerasAboutAnotherOrigin) {
    std::vector<Photograph> photos;
    photos.push_back({"a.png", Image(8, 4, 4), test::camera_at({3, 0, 0}, {0, 0, 0}, 8, 4, 8)});
    move_cameras(photos, {100, 0, 5}, {90, 1, 5});
    EXPECT_FLOAT_EQ(photos[0].camera.to_world[3], 13);
    EXPECT_FLOAT_EQ(photos[0].camera.to_world[7], -1);
    EXPECT_FLOAT_EQ(photos[0].camera.to_world[11], 0);
}

}  // namespace
}  // namespace stipple::radiance
