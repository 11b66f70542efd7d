#include "stipple/metrics/image_quality.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

Array<float, 3> noise(std::array<int64_t, 3> shape, uint64_t seed, float low = 0) {
    Array<float, 3> image(shape);
    const Rng rng(seed);
    for (int64_t i = 0; i < image.elements(); ++i) image.data()[i] = low + (1 - low) * rng.uniform(i);
    return image;
}

/// Every window for itself, by the two-dimensional weights, moments about the mean.
double brute_ssim(View<const float, 3> a, View<const float, 3> b, double range) {
    double total = 0, count = 0;
    for (int64_t c = 0; c < a.size(2); ++c)
        for (int64_t y = 0; y + 11 <= a.size(0); ++y)
            for (int64_t x = 0; x + 11 <= a.size(1); ++x) {
                double weights = 0, mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0;
                for (const bool second : {false, true})
                    for (int i = 0; i < 11; ++i)
                        for (int j = 0; j < 11; ++j) {
                            const double w = std::exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / 4.5);
                            const double p = a(y + i, x + j, c), q = b(y + i, x + j, c);
                            if (!second) {
                                weights += w, mean_a += w * p, mean_b += w * q;
                                continue;
                            }
                            const double u = p - mean_a / weights, v = q - mean_b / weights;
                            aa += w * u * u / weights, bb += w * v * v / weights, ab += w * u * v / weights;
                        }
                mean_a /= weights, mean_b /= weights;
                const double c1 = 1e-4 * range * range, c2 = 9e-4 * range * range;
                total += (2 * mean_a * mean_b + c1) * (2 * ab + c2) /
                         ((mean_a * mean_a + mean_b * mean_b + c1) * (aa + bb + c2));
                ++count;
            }
    return total / count;
}

TEST(MetricsImageQuality, PsnrByHand) {
    Array<float, 3> a({2, 2, 1}), b({2, 2, 1});
    for (int i = 0; i < 4; ++i) a.data()[i] = 0.5f, b.data()[i] = i == 0 ? 0.75f : 0.5f;
    EXPECT_NEAR(metrics::psnr(a.view(), b.view()), -10 * std::log10(0.0625 / 4), 1e-12);
    EXPECT_NEAR(metrics::psnr(a.view(), b.view(), 2), -10 * std::log10(0.0625 / 16), 1e-12);
    EXPECT_EQ(metrics::psnr(a.view(), a.view()), INFINITY);
}

TEST(MetricsImageQuality, SsimIsThatOfEveryWindow) {
    for (const auto& shape : {std::array<int64_t, 3>{11, 11, 1}, {23, 40, 3}, {35, 12, 4}}) {
        const Array<float, 3> a = noise(shape, 1), b = noise(shape, 2, 0.4f);
        EXPECT_NEAR(metrics::ssim(a.view(), b.view()), brute_ssim(a.view(), b.view(), 1), 1e-10);
        EXPECT_NEAR(metrics::ssim(a.view(), b.view(), 3), brute_ssim(a.view(), b.view(), 3), 1e-10);
        EXPECT_NEAR(metrics::ssim(a.view(), a.view()), 1, 1e-12);
    }
}

TEST(MetricsImageQuality, EightBitImagesHaveARangeOf255) {
    Image a(20, 30, 3), b(20, 30, 3);
    const Rng rng(4);
    for (int64_t i = 0; i < a.pixels.elements(); ++i) {
        a.pixels.data()[i] = static_cast<uint8_t>(rng.below(2 * i, 256));
        b.pixels.data()[i] = static_cast<uint8_t>(rng.below(2 * i + 1, 256));
    }
    Array<float, 3> x({30, 20, 3}), y({30, 20, 3});
    for (int64_t i = 0; i < x.elements(); ++i) {
        x.data()[i] = static_cast<float>(a.pixels.data()[i]) / 255;
        y.data()[i] = static_cast<float>(b.pixels.data()[i]) / 255;
    }
    EXPECT_NEAR(metrics::psnr(a, b), metrics::psnr(x.view(), y.view()), 1e-5);
    EXPECT_NEAR(metrics::ssim(a, b), metrics::ssim(x.view(), y.view()), 1e-5);
}

TEST(MetricsImageQuality, ThreadsDoNotMatter) {
    const Array<float, 3> a = noise({90, 70, 3}, 1), b = noise({90, 70, 3}, 2);
    const int before = threads();
    set_threads(1);
    const double one = metrics::ssim(a.view(), b.view());
    set_threads(3);
    EXPECT_EQ(metrics::ssim(a.view(), b.view()), one);
    set_threads(before);
}

TEST(MetricsImageQuality, NamesWhatIsWrong) {
    const Array<float, 3> a = noise({12, 10, 1}, 1), b = noise({10, 12, 1}, 1), none({0, 4, 3});
    EXPECT_EQ(bad_argument_of([&] { metrics::psnr(a.view(), b.view()); }),
              "psnr: images of [12, 10, 1] and [10, 12, 1]");
    EXPECT_EQ(bad_argument_of([&] { metrics::psnr(none.view(), none.view()); }), "psnr: empty images");
    EXPECT_EQ(bad_argument_of([&] { metrics::psnr(a.view(), a.view(), 0); }), "psnr: a range of 0");
    EXPECT_EQ(bad_argument_of([&] { metrics::ssim(a.view(), a.view()); }),
              "ssim: an image of 10 x 12, the window is 11 x 11");
}

}  // namespace
}  // namespace stipple::test
