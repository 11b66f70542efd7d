#include "stipple/metrics/jsd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::JsdOptions;

/// Counts at the nearest lattice point, all of them tried.
std::map<std::array<int, 3>, double> brute_histogram(const PointCloud& cloud, const JsdOptions& options) {
    std::map<std::array<int, 3>, double> shares;
    const double step = 2 * options.half_extent / (options.resolution - 1);
    for (const Double3& p : world_of(cloud)) {
        double least = INFINITY;
        std::array<int, 3> best = {};
        for (int x = 0; x < options.resolution; ++x)
            for (int y = 0; y < options.resolution; ++y)
                for (int z = 0; z < options.resolution; ++z) {
                    const Double3 q = {x * step - options.half_extent, y * step - options.half_extent,
                                       z * step - options.half_extent};
                    if (options.within_sphere && std::hypot(q[0], q[1], q[2]) > options.half_extent + 1e-9) continue;
                    const double d = std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
                    if (d < least) least = d, best = {x, y, z};
                }
        shares[best] += 1.0 / static_cast<double>(cloud.size());
    }
    return shares;
}

/// By Kullback-Leibler divergences from the mixture: another formula for the same number.
double brute_jsd(const PointCloud& a, const PointCloud& b, const JsdOptions& options) {
    std::map<std::array<int, 3>, double> p = brute_histogram(a, options), q = brute_histogram(b, options), mixed = p;
    for (const auto& [cell, share] : q) mixed[cell] += share;
    double sum = 0;
    for (const auto& [cell, share] : p) sum += share / 2 * std::log2(share / (mixed[cell] / 2));
    for (const auto& [cell, share] : q) sum += share / 2 * std::log2(share / (mixed[cell] / 2));
    return sum;
}

TEST(MetricsJsd, IsThatOfTwoHistograms) {
    const PointCloud a = sphere_cloud(300, 1), b = sphere_cloud(200, 2);
    for (const bool within : {true, false})
        for (const int resolution : {2, 5, 12}) {
            JsdOptions options;
            options.resolution = resolution;
            options.within_sphere = within;
            if (within && resolution == 2) continue;  // its 8 points are all outside
            const metrics::Jsd jsd = metrics::jensen_shannon(points_of(a), points_of(b), options);
            EXPECT_NEAR(jsd.value, brute_jsd(a, b, options), 1e-12) << resolution;
            EXPECT_EQ(jsd.outside, 0);
        }
}

TEST(MetricsJsd, FromTheSameToDisjoint) {
    const metrics::Points a = points_of(cube_cloud(500, 1));
    EXPECT_EQ(metrics::jensen_shannon(a, a).value, 0);
    const metrics::Points left = points_of(cloud_of({-0.5f, 0, 0, -0.6f, 0, 0})),
                          right = points_of(cloud_of({0.5f, 0, 0}));
    EXPECT_DOUBLE_EQ(metrics::jensen_shannon(left, right).value, 1);
}

TEST(MetricsJsd, CountsWhatLiesOutsideAndLeavesOutWhatIsNotFinite) {
    const metrics::Points a = points_of(cloud_of({3, 0, 0, NAN, 0, 0})), b = points_of(cloud_of({1, 0, 0}));
    const metrics::Jsd jsd = metrics::jensen_shannon(a, b);
    EXPECT_EQ(jsd.outside, 1);
    EXPECT_EQ(jsd.value, 0) << "both count at the lattice's nearest point";
}

TEST(MetricsJsd, NamesWhatIsWrong) {
    const metrics::Points a = points_of(cube_cloud(5, 1)), none = points_of(cloud_of({NAN, 0, 0}));
    EXPECT_EQ(bad_argument_of([&] { metrics::jensen_shannon(a, none); }),
              "jensen_shannon: a cloud has no finite points");
    EXPECT_EQ(bad_argument_of([&] {
                  metrics::jensen_shannon(a, a, {1, 1, true});
              }),
              "jensen_shannon: a resolution of 2 to 256, got 1");
    EXPECT_EQ(bad_argument_of([&] {
                  metrics::jensen_shannon(a, a, {28, 0, true});
              }),
              "jensen_shannon: the half extent must be above 0, got 0");
    EXPECT_EQ(bad_argument_of([&] {
                  metrics::jensen_shannon(a, a, {2, 1, true});
              }),
              "jensen_shannon: no point of the lattice lies within the sphere");
}

}  // namespace
}  // namespace stipple::test
