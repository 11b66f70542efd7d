// Flat places of a sweep: new points stay in the plane of the ground there, and nowhere else are they touched.

#include "stipple/tasks/upsample/planes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"

namespace stipple::tasks {
namespace {

constexpr float kGroundNoise = 0.005f;

void keep_to_planes(View<const float, 2> inputs, View<float, 2> points) {
    const CloudSearch search(inputs);
    SweptPlanes(search).keep(points);
}

/// Lines half a metre apart, a point every `step` metres on them, on the plane z = 0.1 x with some noise.
Array<float, 2> swept_ground(float step) {
    const int64_t lines = 12, each = 100;
    Array<float, 2> points({lines * each, 3});
    const Rng rng(5, 1);
    for (int64_t i = 0; i < lines * each; ++i) {
        const float x = step * static_cast<float>(i % each), y = 0.5f * static_cast<float>(i / each);
        points.data()[3 * i] = x, points.data()[3 * i + 1] = y;
        points.data()[3 * i + 2] = 0.1f * x + kGroundNoise * rng.normal(static_cast<uint64_t>(i));
    }
    return points;
}

/// Points half way between the lines, `above` the plane.
Array<float, 2> points_above(float above) {
    Array<float, 2> points({50, 3});
    for (int64_t i = 0; i < 50; ++i) {
        const float x = 1 + 0.05f * static_cast<float>(i);
        points.data()[3 * i] = x, points.data()[3 * i + 1] = 2.75f, points.data()[3 * i + 2] = 0.1f * x + above;
    }
    return points;
}

double mean_height(const Array<float, 2>& points) {
    double sum = 0;
    for (int64_t i = 0; i < points.size(0); ++i)
        sum += std::abs(points.data()[3 * i + 2] - 0.1 * points.data()[3 * i]) / std::sqrt(1.01) /
               static_cast<double>(points.size(0));
    return sum;
}

TEST(UpsamplePlanes, GroundOfASweepStaysThin) {
    const Array<float, 2> inputs = swept_ground(0.05f);
    Array<float, 2> points = points_above(0.03f), below = points_above(-0.03f), there = points_above(0);
    for (Array<float, 2>* some : {&points, &below, &there}) keep_to_planes(inputs.view(), some->view());
    EXPECT_LE(mean_height(points), mean_height(inputs));
    EXPECT_LE(mean_height(below), mean_height(inputs));
    const Array<float, 2> as_it_was = points_above(0);
    for (int64_t i = 0; i < 50; ++i) {
        EXPECT_NEAR(points.data()[3 * i], as_it_was.data()[3 * i], 0.01);  // along the normal alone
        EXPECT_NEAR(points.data()[3 * i + 1], as_it_was.data()[3 * i + 1], 0.01);
        EXPECT_NEAR(there.data()[3 * i + 2], as_it_was.data()[3 * i + 2], 0.01);
    }
}

TEST(UpsamplePlanes, EvenPointsAndFewPointsAreLeftAlone) {
    Array<float, 2> even = swept_ground(0.5f);
    for (int64_t i = 0; i < even.size(0); ++i)
        even.data()[3 * i] *= 0.1f, even.data()[3 * i + 1] *= 0.1f, even.data()[3 * i + 2] *= 0.1f;
    const Array<float, 2> line = swept_ground(0.05f);
    const Array<float, 2> before = points_above(0.03f);
    const View<const float, 2> clouds[] = {even.view(), {line.data(), {2, 3}}, {line.data(), {0, 3}}};
    for (const View<const float, 2>& inputs : clouds) {
        Array<float, 2> points = points_above(0.03f);
        keep_to_planes(inputs, points.view());
        for (int64_t i = 0; i < 150; ++i) EXPECT_EQ(points.data()[i], before.data()[i]);
    }
    Array<float, 2> lost = points_above(0.03f);
    lost.data()[1] = NAN;
    keep_to_planes(line.view(), lost.view());
    EXPECT_TRUE(std::isnan(lost.data()[1]));
    EXPECT_EQ(lost.data()[0], before.data()[0]);
}

}  // namespace
}  // namespace stipple::tasks
