#include "stipple/metrics/transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::Emd;
using metrics::EmdMethod;

class MetricsTransport : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(MetricsTransport);

/// The least mean distance over all permutations.
double brute_emd(const PointCloud& a, const PointCloud& b) {
    const std::vector<Double3> p = world_of(a), q = world_of(b);
    std::vector<size_t> order(p.size());
    std::iota(order.begin(), order.end(), size_t{0});
    double least = INFINITY;
    do {
        double sum = 0;
        for (size_t i = 0; i < order.size(); ++i)
            sum += std::hypot(p[i][0] - q[order[i]][0], p[i][1] - q[order[i]][1], p[i][2] - q[order[i]][2]);
        least = std::min(least, sum / static_cast<double>(order.size()));
    } while (std::next_permutation(order.begin(), order.end()));
    return least;
}

TEST_P(MetricsTransport, IsTheCheapestOfAllMatchings) {
    for (const int n : {1, 2, 7}) {
        const PointCloud a = cube_cloud(n, 1), b = cube_cloud(n, 2);
        const double least = brute_emd(a, b);
        const Emd exact = metrics::earth_mover(points_of(a), points_of(b), EmdMethod::exact, GetParam());
        EXPECT_NEAR(exact.value, least, 1e-12);
        EXPECT_EQ(exact.lower_bound, exact.value);
        const Emd auction = metrics::earth_mover(points_of(a), points_of(b), EmdMethod::auction, GetParam());
        EXPECT_GE(auction.value, least * (1 - 1e-6));
        EXPECT_LE(auction.value, least * 1.0101);
        EXPECT_LE(auction.lower_bound, least * (1 + 1e-6));
    }
}

TEST_P(MetricsTransport, SplitsTheWeightBetweenCloudsOfTwoSizes) {
    const metrics::Points two = points_of(cloud_of({0, 0, 0, 10, 0, 0})),
                          four = points_of(cloud_of({1, 0, 0, 0, 2, 0, 10, 3, 0, 10, 0, 4}));
    EXPECT_NEAR(metrics::earth_mover(two, four, EmdMethod::exact, GetParam()).value, 2.5, 1e-12);
    EXPECT_NEAR(metrics::earth_mover(four, two, EmdMethod::auction, GetParam()).value, 2.5, 0.0251);
}

TEST_P(MetricsTransport, IsExactWhereAnAuctionWouldNeedManyCopies) {
    const metrics::Points a = points_of(cube_cloud(30, 1)), b = points_of(cube_cloud(47, 2));
    const Emd exact = metrics::earth_mover(a, b, EmdMethod::exact, GetParam()),
              auction = metrics::earth_mover(a, b, EmdMethod::auction, GetParam());
    EXPECT_GT(exact.value, 0);
    EXPECT_EQ(auction.value, exact.value);
    EXPECT_EQ(auction.lower_bound, exact.value);
}

TEST(MetricsTransportErrors, NameWhatIsWrong) {
    const metrics::Points one = points_of(cube_cloud(1, 1)), none = points_of(PointCloud(0)),
                          bad = points_of(cloud_of({0, NAN, 0, 1, 1, 1}));
    EXPECT_EQ(bad_argument_of([&] { metrics::earth_mover(one, none, EmdMethod::exact); }),
              "earth_mover: a cloud has no points");
    EXPECT_EQ(bad_argument_of([&] { metrics::earth_mover(bad, one, EmdMethod::auction); }),
              "earth_mover: 1 of 2 points are not finite");
    const metrics::Points many = points_of(cube_cloud(4097, 1));
    EXPECT_NE(bad_argument_of([&] { metrics::earth_mover(many, many, EmdMethod::exact); }).find("4096"),
              std::string::npos);
}

}  // namespace
}  // namespace stipple::test
