#include "stipple/metrics/cloud_distance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::ChamferKind;
using metrics::HausdorffKind;

/// Distances 0 and 3 one way, 0, 1 and 4 the other.
metrics::NearestBoth example() {
    return metrics::nearest_between(points_of(cloud_of({0, 0, 0, 0, 3, 0})),
                                    points_of(cloud_of({0, 0, 0, 1, 0, 0, -4, 0, 0})));
}

TEST(MetricsCloudDistance, EveryChamferConventionByHand) {
    const metrics::CloudDistances d = metrics::cloud_distances(example());
    const double forward = 9 / 2.0, backward = 17 / 3.0;
    EXPECT_DOUBLE_EQ(chamfer(d, ChamferKind::squared_sum), forward + backward);
    EXPECT_DOUBLE_EQ(chamfer(d, ChamferKind::squared_half), (forward + backward) / 2);
    EXPECT_DOUBLE_EQ(chamfer(d, ChamferKind::l1_sum), 1.5 + 5 / 3.0);
    EXPECT_DOUBLE_EQ(chamfer(d, ChamferKind::l1_half), (1.5 + 5 / 3.0) / 2);
    EXPECT_DOUBLE_EQ(chamfer(d, ChamferKind::l1_max), 5 / 3.0);
}

TEST(MetricsCloudDistance, EveryMeaningOfHausdorffByHand) {
    const metrics::CloudDistances d = metrics::cloud_distances(example());
    EXPECT_EQ(hausdorff(d, HausdorffKind::symmetric), 4);
    EXPECT_EQ(hausdorff(d, HausdorffKind::to_truth), 3);
    EXPECT_EQ(hausdorff(d, HausdorffKind::from_truth), 4);
    EXPECT_EQ(hausdorff(d, HausdorffKind::squared_sum), 25);
    EXPECT_EQ(hausdorff(d, HausdorffKind::squared_half), 12.5);
}

TEST(MetricsCloudDistance, NoPointsAreNoNumber) {
    const metrics::CloudDistances d =
        metrics::cloud_distances(metrics::nearest_between(points_of(cube_cloud(3, 1)), points_of(PointCloud(0))));
    EXPECT_TRUE(std::isnan(chamfer(d, ChamferKind::squared_sum)));
    EXPECT_TRUE(std::isnan(chamfer(d, ChamferKind::l1_max)));
    EXPECT_TRUE(std::isnan(hausdorff(d, HausdorffKind::symmetric)));
    EXPECT_TRUE(std::isnan(hausdorff(d, HausdorffKind::squared_half)));
}

TEST(MetricsCloudDistance, ConventionsOfBruteForceOnClouds) {
    const PointCloud a = sphere_cloud(700, 3), b = sphere_cloud(1200, 4);
    const metrics::CloudDistances d = metrics::cloud_distances(metrics::nearest_between(points_of(a), points_of(b)));
    const std::vector<double> forward = brute_nearest(world_of(a), world_of(b)),
                              backward = brute_nearest(world_of(b), world_of(a));
    const double cd = brute_mean(forward) + brute_mean(backward), hd = brute_max(forward) + brute_max(backward);
    EXPECT_NEAR(chamfer(d, ChamferKind::squared_sum), cd, 1e-9 * cd);
    EXPECT_NEAR(hausdorff(d, HausdorffKind::squared_sum), hd, 1e-9 * hd);
}

TEST(MetricsFScore, CountsBothSharesAndTheBorderIn) {
    const metrics::FScore at_one = metrics::f_score(example(), 1);
    EXPECT_DOUBLE_EQ(at_one.precision, 0.5);
    EXPECT_DOUBLE_EQ(at_one.recall, 2 / 3.0);
    EXPECT_DOUBLE_EQ(at_one.f, 2 * 0.5 * (2 / 3.0) / (0.5 + 2 / 3.0));
    EXPECT_DOUBLE_EQ(metrics::f_score(example(), 4).f, 1);
    const metrics::NearestBoth far =
        metrics::nearest_between(points_of(cloud_of({0, 0, 0})), points_of(cloud_of({9, 0, 0, NAN, 0, 0})));
    EXPECT_EQ(metrics::f_score(far, 1).f, 0);
    EXPECT_EQ(metrics::f_score(far, 9).recall, 0.5) << "a point that is not finite is far";
    EXPECT_EQ(bad_argument_of([&] { metrics::f_score(far, -1); }), "f_score: the radius must be from 0, got -1");
    EXPECT_EQ(bad_argument_of([&] { metrics::f_score(far, NAN); }), "f_score: the radius must be from 0, got nan");
}

TEST(MetricsNormalConsistency, IsTheMeanCosineOfBothWays) {
    const metrics::NearestBoth nearest = example();
    const float own[] = {0, 0, 2, 0, 1, 0};                    // any length
    const float other[] = {0, 0, -1, 0, 0.6f, 0.8f, 0, 0, 0};  // the last has none
    const View<const float, 2> a(own, {2, 3}), b(other, {3, 3});
    const metrics::NormalConsistency plain = metrics::normal_consistency(nearest, a, b);
    // Both points of a are nearest to b's first; b's first two are nearest to a's first.
    EXPECT_DOUBLE_EQ(plain.to_truth, 0.5);
    EXPECT_NEAR(plain.from_truth, 0.9, 1e-7);
    EXPECT_NEAR(plain.mean, 0.7, 1e-7);
    EXPECT_EQ(plain.used, 4);
    const metrics::NormalConsistency oriented = metrics::normal_consistency(nearest, a, b, true);
    EXPECT_DOUBLE_EQ(oriented.to_truth, -0.5);
    EXPECT_NEAR(oriented.from_truth, -0.1, 1e-7);
    EXPECT_EQ(bad_argument_of([&] { metrics::normal_consistency(nearest, b, b); }),
              "normal_consistency: normals must be [2, 3] on the CPU, got [3, 3] on cpu");
}

}  // namespace
}  // namespace stipple::test
