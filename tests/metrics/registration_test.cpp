#include "stipple/metrics/registration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/rng.h"
#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::Motion;

constexpr double kDegree = 3.14159265358979323846 / 180;

/// Turns by an angle about an axis (Rodrigues), then moves.
Motion turn(Double3 axis, double degrees, Double3 shift = {}) {
    const double length = std::hypot(axis[0], axis[1], axis[2]), c = std::cos(degrees * kDegree),
                 s = std::sin(degrees * kDegree);
    for (double& x : axis) x /= length;
    const double cross[3][3] = {{0, -axis[2], axis[1]}, {axis[2], 0, -axis[0]}, {-axis[1], axis[0], 0}};
    Motion m = {};
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) m[4 * i + j] = c * (i == j) + s * cross[i][j] + (1 - c) * axis[i] * axis[j];
        m[4 * i + 3] = shift[i];
    }
    m[15] = 1;
    return m;
}

Motion product(const Motion& a, const Motion& b) {
    Motion m = {};
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            for (int k = 0; k < 4; ++k) m[4 * i + j] += a[4 * i + k] * b[4 * k + j];
    return m;
}

TEST(MetricsRegistration, TheAngleIsRightFromNoneToHalfATurn) {
    const Rng rng(5);
    for (int i = 0; i < 50; ++i) {
        const Double3 axis = {rng.normal(3 * i), rng.normal(3 * i + 1), rng.normal(3 * i + 2)};
        const Motion start = turn({1, 2, 3}, 77.0 * i);
        for (const double angle : {0.0, 1e-7, 1e-3, 1.0, 45.0, 90.0, 179.0, 179.9999, 180.0}) {
            EXPECT_NEAR(metrics::rotation_error(start, product(start, turn(axis, angle))), angle, 1e-9);
            EXPECT_NEAR(metrics::rotation_error_doubled(product(start, turn(axis, angle)), start), 2 * angle, 2e-9);
        }
    }
    EXPECT_EQ(metrics::rotation_error(turn({1, 1, 1}, 0), turn({1, 1, 1}, 0)), 0) << "not NaN";
}

TEST(MetricsRegistration, TranslationAndPointsByHand) {
    const Motion still = turn({0, 0, 1}, 0), moved = turn({0, 0, 1}, 90, {3, 4, 12});
    EXPECT_DOUBLE_EQ(metrics::translation_error(still, moved), 13);
    const PointCloud points = cloud_of({0, 0, 0, 1, 0, 0, NAN, 0, 0});
    // (0,0,0) -> (3,4,12): 169; (1,0,0) -> (3,5,12) against (1,0,0): 4 + 25 + 144 = 173.
    EXPECT_NEAR(metrics::point_rmse(points.positions.view(), moved, still), std::sqrt((169 + 173) / 2.0), 1e-12);
    EXPECT_TRUE(std::isnan(metrics::point_rmse(PointCloud(0).positions.view(), moved, still)));
}

TEST(MetricsRegistration, AreaUnderThePrecisionCurve) {
    const double zero[] = {0, 0}, half[] = {90}, both[] = {0, 90}, never[] = {NAN, 400};
    EXPECT_DOUBLE_EQ(metrics::precision_auc(zero), 1);
    EXPECT_NEAR(metrics::precision_auc(half), 0.5, 0.5 / 180);
    EXPECT_NEAR(metrics::precision_auc(both), 0.75, 0.5 / 180);
    EXPECT_EQ(metrics::precision_auc(never), 0);
    // Trapezoids of width 0.5 from 89.5 to 90 and all after: (90.5 - 0.25) / 180.
    EXPECT_NEAR(metrics::precision_auc(half), 90.25 / 180, 1e-12);
    EXPECT_NEAR(metrics::precision_auc(half, 100, 30), (0.5 * 30 + 10) / 100, 1e-12) << "0 30 60 90 100";
    EXPECT_EQ(bad_argument_of([] { metrics::precision_auc({}); }), "precision_auc: no errors");
    EXPECT_EQ(bad_argument_of([&] { metrics::precision_auc(zero, 0, 1); }), "precision_auc: thresholds to 0 by 1");
}

TEST(MetricsRegistration, SuccessNeedsBoth) {
    const double rotations[] = {1, 1, 9, NAN}, translations[] = {0.01, 0.9, 0.01, 0};
    EXPECT_DOUBLE_EQ(metrics::success_rate(rotations, translations, 5, 0.05), 0.25);
    EXPECT_EQ(bad_argument_of([&] { metrics::success_rate(rotations, {}, 5, 1); }),
              "success_rate: 4 rotations, 0 translations");
}

TEST(MetricsRegistration, RefusesWhatIsNoRigidMotion) {
    const Motion good = turn({0, 1, 0}, 30);
    Motion scaled = good, mirrored = good, projective = good, bad = good;
    for (int i = 0; i < 12; ++i) scaled[i] *= 1.01;
    for (int i = 0; i < 3; ++i) mirrored[i] = -mirrored[i];
    projective[14] = 1;
    bad[5] = NAN;
    const auto message = [&](const Motion& m) { return bad_argument_of([&] { metrics::rotation_error(good, m); }); };
    EXPECT_EQ(message(scaled), "rotation_error: no rotation: R R^T differs from the identity by 0.0201");
    EXPECT_EQ(message(mirrored), "rotation_error: no rotation but a reflection: the determinant is -1");
    EXPECT_EQ(message(projective), "rotation_error: the last row is 0 0 1 1, not 0 0 0 1");
    EXPECT_EQ(message(bad), "rotation_error: a motion holds nan");
}

}  // namespace
}  // namespace stipple::test
