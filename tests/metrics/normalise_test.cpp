#include "stipple/metrics/normalise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

TEST(MetricsNormalise, TheUnitSphereIsAboutTheMeanOfFinitePoints) {
    PointCloud cloud = cloud_of({1, 2, 3, 5, 2, 3, 3, 2, 7, NAN, 0, 0});
    cloud.origin = {100, 0, -3};
    const metrics::Frame frame = metrics::unit_sphere(cloud);
    EXPECT_DOUBLE_EQ(frame.origin[0], 103);
    EXPECT_DOUBLE_EQ(frame.origin[1], 2);
    EXPECT_DOUBLE_EQ(frame.origin[2], 13 / 3.0 - 3);
    EXPECT_DOUBLE_EQ(frame.scale, 8 / 3.0);
    const metrics::Points points = metrics::in_frame(cloud, frame);
    EXPECT_EQ(points.finite, 3);
    EXPECT_EQ(points.size(), 4);
    EXPECT_DOUBLE_EQ(points.exact.data()[8], 1);
    EXPECT_FLOAT_EQ(points.rounded.data()[8], 1);
    EXPECT_TRUE(std::isnan(points.exact.data()[9]));
}

TEST(MetricsNormalise, OnePointHasScaleOneAndNoneIsAnError) {
    PointCloud cloud = cloud_of({1, 2, 3});
    EXPECT_EQ(metrics::unit_sphere(cloud).scale, 1);
    cloud.positions.data()[0] = INFINITY;
    EXPECT_THROW(metrics::unit_sphere(cloud), Error);
    EXPECT_THROW(metrics::unit_sphere(PointCloud()), Error);
    EXPECT_EQ(metrics::in_frame(PointCloud(), {}).size(), 0);
    EXPECT_THROW(metrics::in_frame(cloud, {{}, 0}), Error);
    EXPECT_THROW(metrics::in_frame(cloud, {{}, NAN}), Error);
}

TEST(MetricsNormalise, OriginsOfAnySizeLoseNothing) {
    PointCloud near = cloud_of({0.125f, 0.25f, 0.0009765625f}), far = near.clone();
    far.origin = {500000.5, 5.0e6, -12};
    const metrics::Points a = metrics::in_frame(near, {}), b = metrics::in_frame(far, {far.origin, 1});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(a.exact.data()[i], b.exact.data()[i]);
    // Beyond float32: kept in float64, but nothing a search could find.
    const metrics::Points tiny = metrics::in_frame(near, {{}, std::numeric_limits<double>::min()});
    EXPECT_EQ(tiny.finite, 0);
    EXPECT_TRUE(std::isfinite(tiny.exact.data()[0]));
}

}  // namespace
}  // namespace stipple::test
