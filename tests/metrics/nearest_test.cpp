#include "stipple/metrics/nearest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "stipple/core/parallel.h"
#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::Distances;
using metrics::NearestBoth;

class MetricsNearest : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(MetricsNearest);

TEST_P(MetricsNearest, AreThoseOfAllPairsInFloat64) {
    for (const auto& [n, m] : {std::pair{1, 1}, {2, 1}, {257, 1000}, {3001, 777}}) {
        const PointCloud a = cube_cloud(n, 1), b = cube_cloud(m, 2);
        // A frame whose numbers are not those of the files: searches round them.
        const metrics::Frame frame{{0.1, 0.2, 0.3}, 0.77};
        const NearestBoth found =
            metrics::nearest_between(metrics::in_frame(a, frame), metrics::in_frame(b, frame), GetParam());
        const auto in_frame = [&](const PointCloud& cloud) {
            std::vector<Double3> points = world_of(cloud);
            for (Double3& p : points)
                for (int axis = 0; axis < 3; ++axis) p[axis] = (p[axis] - frame.origin[axis]) / frame.scale;
            return points;
        };
        const std::vector<double> to_b = brute_nearest(in_frame(a), in_frame(b)),
                                  to_a = brute_nearest(in_frame(b), in_frame(a));
        for (int i = 0; i < n; ++i) EXPECT_NEAR(found.of_a.squared.data()[i], to_b[i], 1e-12 + 1e-6 * to_b[i]);
        for (int i = 0; i < m; ++i) EXPECT_NEAR(found.of_b.squared.data()[i], to_a[i], 1e-12 + 1e-6 * to_a[i]);
        const metrics::Nearest one = metrics::nearest_of(metrics::in_frame(a, frame), metrics::in_frame(b, frame));
        EXPECT_EQ(0, std::memcmp(one.squared.data(), found.of_a.squared.data(), sizeof(double) * n));
        EXPECT_EQ(0, std::memcmp(one.index.data(), found.of_a.index.data(), sizeof(int32_t) * n));
    }
}

TEST_P(MetricsNearest, NonFinitePointsAndEmptyCloudsFindNothing) {
    const PointCloud a = cloud_of({0, 0, 0, NAN, 0, 0, 1, 0, 0}), b = cloud_of({INFINITY, 0, 0, 3, 0, 0});
    const NearestBoth found = metrics::nearest_between(points_of(a), points_of(b), GetParam());
    EXPECT_EQ(found.of_a.index.data()[0], 1);
    EXPECT_EQ(found.of_a.squared.data()[0], 9);
    EXPECT_EQ(found.of_a.index.data()[1], -1);
    EXPECT_EQ(found.of_a.squared.data()[1], INFINITY);
    EXPECT_EQ(found.of_b.index.data()[0], -1);
    EXPECT_EQ(found.of_b.squared.data()[1], 4);
    const NearestBoth none = metrics::nearest_between(points_of(a), points_of(PointCloud(0)), GetParam());
    EXPECT_EQ(none.of_a.squared.data()[0], INFINITY);
    EXPECT_EQ(none.of_b.squared.size(0), 0);
}

TEST(MetricsNearestThreads, DoNotMatter) {
    const metrics::Points a = points_of(cube_cloud(20000, 1)), b = points_of(cube_cloud(17000, 2));
    const int before = threads();
    set_threads(1);
    const NearestBoth one = metrics::nearest_between(a, b);
    set_threads(3);
    const NearestBoth three = metrics::nearest_between(a, b);
    set_threads(before);
    EXPECT_EQ(0, std::memcmp(one.of_a.squared.data(), three.of_a.squared.data(), sizeof(double) * a.size()));
    EXPECT_EQ(0, std::memcmp(one.of_b.squared.data(), three.of_b.squared.data(), sizeof(double) * b.size()));
}

TEST(MetricsDistances, SumUpWhatIsFinite) {
    const double squared[] = {4, INFINITY, 9, NAN, 0};
    const Distances some = metrics::distances_of_squared(squared);
    EXPECT_EQ(some.count, 3);
    EXPECT_DOUBLE_EQ(some.mean, 5 / 3.0);
    EXPECT_DOUBLE_EQ(some.mean_squared, 13 / 3.0);
    EXPECT_EQ(some.max, 3);
    EXPECT_NEAR(some.deviation(), std::sqrt(13 / 3.0 - 25 / 9.0), 1e-15);
    const double plain[] = {2, 3, 0};
    EXPECT_EQ(metrics::distances_of(plain).mean_squared, some.mean_squared);
    const Distances none = metrics::distances_of({});
    EXPECT_EQ(none.count, 0);
    EXPECT_TRUE(std::isnan(none.mean) && std::isnan(none.mean_squared) && std::isnan(none.max));
}

TEST(MetricsDistances, PoolCountsEveryPointOnce) {
    const double first[] = {1, 2, 6}, second[] = {10}, all[] = {1, 2, 6, 10};
    const Distances pooled = metrics::pooled(metrics::distances_of(first), metrics::distances_of(second)),
                    whole = metrics::distances_of(all);
    EXPECT_EQ(pooled.count, 4);
    EXPECT_DOUBLE_EQ(pooled.mean, whole.mean);
    EXPECT_DOUBLE_EQ(pooled.deviation(), whole.deviation());
    EXPECT_EQ(pooled.max, 10);
    EXPECT_EQ(metrics::pooled(metrics::Distances{}, whole).mean, whole.mean);
    EXPECT_EQ(metrics::pooled(whole, metrics::distances_of({})).mean, whole.mean);
}

}  // namespace
}  // namespace stipple::test
