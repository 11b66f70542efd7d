#include "stipple/metrics/density.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

constexpr double kPi = 3.14159265358979323846;

class MetricsDensity : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(MetricsDensity);

TEST_P(MetricsDensity, IsThatOfSortedDistances) {
    const PointCloud cloud = cube_cloud(400, 7);
    const std::vector<Double3> points = world_of(cloud);
    const int k = 5;
    const metrics::Density density = metrics::density_of(points_of(cloud), k, GetParam());
    double sum = 0, squares = 0, least = INFINITY, most = 0;
    for (size_t i = 0; i < points.size(); ++i) {
        std::vector<double> distances;
        for (size_t j = 0; j < points.size(); ++j)
            if (j != i)
                distances.push_back(
                    std::hypot(points[i][0] - points[j][0], points[i][1] - points[j][1], points[i][2] - points[j][2]));
        std::sort(distances.begin(), distances.end());
        sum += distances[0];
        squares += distances[0] * distances[0];
        least = std::min(least, distances[0]);
        most = std::max(most, distances[0]);
        EXPECT_NEAR(density.per_point.data()[i], k / (kPi * distances[k - 1] * distances[k - 1]),
                    1e-9 * density.per_point.data()[i]);
    }
    const double n = static_cast<double>(points.size()), mean = sum / n,
                 deviation = std::sqrt(squares / n - mean * mean);
    EXPECT_EQ(density.points, 400);
    EXPECT_NEAR(density.spacing_mean, mean, 1e-12);
    EXPECT_NEAR(density.spacing_deviation, deviation, 1e-12);
    EXPECT_NEAR(density.spacing_variation, deviation / mean, 1e-9);
    EXPECT_NEAR(density.spacing_min, least, 1e-15);
    EXPECT_NEAR(density.spacing_max, most, 1e-15);
}

TEST(MetricsDensityCases, OfALatticeVariesNotAndOfRandomPointsByHalf) {
    PointCloud lattice(20 * 20), random(20000);
    for (int64_t i = 0; i < lattice.size(); ++i) {
        lattice.positions.data()[3 * i] = static_cast<float>(i % 20);
        lattice.positions.data()[3 * i + 1] = static_cast<float>(i / 20);
        lattice.positions.data()[3 * i + 2] = 0;
    }
    EXPECT_EQ(metrics::density_of(points_of(lattice)).spacing_variation, 0);
    EXPECT_EQ(metrics::density_of(points_of(lattice)).spacing_mean, 1);
    const Rng rng(3);
    for (int64_t i = 0; i < random.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            random.positions.data()[3 * i + axis] = axis == 2 ? 0 : rng.uniform(2 * i + axis);
    // Of a Poisson process on a plane: sqrt(4 / pi - 1) = 0.523; about 2e4 points of unit area.
    const metrics::Density density = metrics::density_of(points_of(random), 16);
    EXPECT_NEAR(density.spacing_variation, 0.523, 0.01);
    EXPECT_NEAR(density.density_mean, 20000 * 16 / 15.0, 1500);
}

TEST(MetricsDensityCases, OfDuplicatesFewAndNonFinitePoints) {
    const metrics::Density twice = metrics::density_of(points_of(cloud_of({1, 1, 1, 1, 1, 1, 4, 1, 1})), 2);
    EXPECT_EQ(twice.spacing_min, 0);
    EXPECT_EQ(twice.spacing_max, 3);
    EXPECT_NEAR(twice.per_point.data()[2], 2 / (kPi * 9), 1e-15);
    const metrics::Density holed = metrics::density_of(points_of(cloud_of({0, 0, 0, NAN, 0, 0, 0, 2, 0})), 100);
    EXPECT_EQ(holed.points, 2);
    EXPECT_EQ(holed.spacing_mean, 2);
    EXPECT_TRUE(std::isnan(holed.per_point.data()[1]));
    EXPECT_NEAR(holed.per_point.data()[0], 1 / (kPi * 4), 1e-15) << "k is at most the number of the others";
    for (const PointCloud& few : {PointCloud(0), cloud_of({1, 2, 3})}) {
        EXPECT_TRUE(std::isnan(metrics::density_of(points_of(few)).spacing_mean));
        EXPECT_TRUE(std::isnan(metrics::density_of(points_of(few)).density_variation));
    }
    EXPECT_EQ(bad_argument_of([] { metrics::density_of(points_of(PointCloud(0)), 0); }),
              "density_of: k must be 1 to 127, got 0");
}

}  // namespace
}  // namespace stipple::test
