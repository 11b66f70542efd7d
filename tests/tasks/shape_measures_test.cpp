#include "stipple/tasks/shape_measures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using Place = std::array<float, 3>;

/// Points of a surface, each from two uniform numbers.
Array<float, 2> surface(int64_t n, uint64_t seed, const std::function<Place(float, float)>& at) {
    const Rng rng(seed);
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < n; ++i) {
        const Place p = at(rng.uniform(static_cast<uint64_t>(2 * i)), rng.uniform(static_cast<uint64_t>(2 * i + 1)));
        std::copy(p.begin(), p.end(), points.data() + 3 * i);
    }
    return points;
}

Place sphere_at(float u, float v) {
    const float z = 2 * u - 1, r = std::sqrt(1 - z * z), angle = 6.2831853f * v;
    return {r * std::cos(angle), r * std::sin(angle), z};
}

TEST(ShapeMeasures, TellSymmetryHeightAndSteps) {
    const ShapeMeasures sphere = measure_shape(surface(1024, 1, sphere_at).view());
    EXPECT_NEAR(sphere[0], -0.9, 0.05);
    EXPECT_NEAR(sphere[1], 0.9, 0.05);
    EXPECT_NEAR(sphere[2], 0, 0.15);
    EXPECT_NEAR(sphere[3], 0, 0.15);
    EXPECT_GT(sphere[5], std::log(0.3));  // a point of the lower half is below one of the upper

    // A spiral ramp: no mirror plane, and one height over each place.
    const auto ramp = surface(1024, 2, [](float u, float v) {
        const float angle = 5 * u, r = 0.3f + 0.6f * v * u;
        return Place{r * std::cos(angle), r * std::sin(angle), 0.2f * u};
    });
    const ShapeMeasures spiral = measure_shape(ramp.view());
    EXPECT_GT(spiral[2], 0.5);
    EXPECT_GE(spiral[3], spiral[2]);
    EXPECT_LT(spiral[5], std::log(0.1));
    EXPECT_LT(spiral[4], sphere[4]);  // less surface
}

TEST(ShapeMeasures, QuarterTurnsAboutZChangeNothing) {
    auto points = surface(300, 3, [](float u, float v) { return Place{u, 0.3f * v * v, u * v}; });
    const ShapeMeasures before = measure_shape(points.view());
    for (int64_t i = 0; i < points.size(0); ++i) {
        float* p = points.data() + 3 * i;
        std::swap(p[0], p[1]);
        p[0] = -p[0];
    }
    const ShapeMeasures after = measure_shape(points.view());
    for (int k = 0; k < kShapeMeasures; ++k) EXPECT_NEAR(before[k], after[k], 1e-3) << k;
}

TEST(ShapeMeasures, OddCloudsAreFinite) {
    for (const int64_t n : {1, 2, 3, 7}) {
        Array<float, 2> points({n, 3});
        std::fill_n(points.data(), 3 * n, 0.0f);
        for (const double x : measure_shape(points.view())) EXPECT_TRUE(std::isfinite(x)) << n;
        const auto some = surface(n, 4, sphere_at);
        for (const double x : measure_shape(some.view())) EXPECT_TRUE(std::isfinite(x)) << n;
    }
    EXPECT_NE(test::message_of([] { measure_shape(Array<float, 2>({0, 3}).view()); }), "");
    EXPECT_NE(test::message_of([] { measure_shape(Array<float, 2>({4, 2}).view()); }), "");
}

}  // namespace
}  // namespace stipple::tasks
