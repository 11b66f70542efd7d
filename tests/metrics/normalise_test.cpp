#include "stipple/metrics/normalise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stipple::test {
namespace {

TEST(MetricsNormalise, CentresAndScalesByTheFurthestPoint) {
    Array<float, 2> points({4, 3});
    const float values[] = {1, 2, 3, 5, 2, 3, 3, 2, 7, NAN, 0, 0};
    std::copy(std::begin(values), std::end(values), points.data());
    const metrics::UnitSphere sphere = metrics::unit_sphere_of(points.view());
    EXPECT_DOUBLE_EQ(sphere.center[0], 3);
    EXPECT_DOUBLE_EQ(sphere.center[1], 2);
    EXPECT_DOUBLE_EQ(sphere.center[2], 13 / 3.0);
    EXPECT_DOUBLE_EQ(sphere.radius, 8 / 3.0);
    const Array<float, 2> unit = metrics::normalised(points.view(), sphere);
    EXPECT_FLOAT_EQ(unit.data()[8], 1);
    EXPECT_TRUE(std::isnan(unit.data()[9]));
}

TEST(MetricsNormalise, OnePointStaysWhereItsCentreIsAndNoneIsAnError) {
    Array<float, 2> points({1, 3});
    const metrics::UnitSphere sphere = metrics::unit_sphere_of(points.view());
    EXPECT_EQ(sphere.radius, 1);
    points.data()[0] = INFINITY;
    EXPECT_THROW(metrics::unit_sphere_of(points.view()), Error);
}

}  // namespace
}  // namespace stipple::test
