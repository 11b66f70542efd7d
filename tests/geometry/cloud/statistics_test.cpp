#include "stipple/geometry/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"

namespace stipple::test {
namespace {

using geometry::Histogram;
using geometry::PointDensity;
using geometry::ValueStatistics;

TEST(GeometryStatistics, PercentilesByCounting) {
    const Rng rng(3);
    for (const int64_t n : {1, 2, 3, 99, 100, 101, 1000}) {
        std::vector<double> values;
        for (int64_t i = 0; i < n; ++i) values.push_back(std::floor(20 * rng.uniform(static_cast<uint64_t>(i))) - 7);
        const ValueStatistics s = geometry::statistics_of(values);
        double mean = 0, squares = 0;
        for (const double x : values) mean += x / static_cast<double>(n);
        for (const double x : values) squares += (x - mean) * (x - mean) / static_cast<double>(n);
        EXPECT_NEAR(s.mean, mean, 1e-12);
        EXPECT_NEAR(s.deviation, std::sqrt(squares), 1e-12);
        for (size_t k = 0; k < s.percentiles.size(); ++k) {
            // The smallest of the values that at least so many percent are not above.
            double expected = HUGE_VAL;
            for (const double x : values) {
                int64_t not_above = 0;
                for (const double y : values) not_above += y <= x;
                if (100 * not_above >= ValueStatistics::kPercents[k] * n) expected = std::min(expected, x);
            }
            EXPECT_EQ(s.percentiles[k], expected) << n << ", " << ValueStatistics::kPercents[k] << " %";
        }
    }
}

TEST(GeometryStatistics, NonFiniteAndNoValues) {
    const std::vector<double> values = {NAN, 3, HUGE_VAL, -HUGE_VAL, 5};
    const ValueStatistics s = geometry::statistics_of(values);
    EXPECT_EQ(s.count, 2);
    EXPECT_EQ(s.non_finite, 3);
    EXPECT_EQ(s.min, 3);
    EXPECT_EQ(s.max, 5);
    EXPECT_EQ(s.mean, 4);
    EXPECT_EQ(geometry::statistics_of({}).count, 0);
    EXPECT_EQ(geometry::histogram_of(values, 2).counts, (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(geometry::histogram_of({}, 3).counts, (std::vector<int64_t>{0, 0, 0}));
}

TEST(GeometryStatistics, HistogramsHoldEveryValueOnce) {
    const std::vector<double> values = {0, 0.5, 1, 1.5, 2, 2, 10};
    const Histogram h = geometry::histogram_of(values, 5);
    EXPECT_EQ(h.low, 0);
    EXPECT_EQ(h.high, 10);
    EXPECT_EQ(h.counts, (std::vector<int64_t>{4, 2, 0, 0, 1}));
    EXPECT_EQ(geometry::histogram_of(values, 2, 0, 2).counts, (std::vector<int64_t>{2, 4}));
    EXPECT_EQ(geometry::histogram_of(std::vector<double>{4, 4}, 3).counts, (std::vector<int64_t>{2, 0, 0}));
    EXPECT_EQ(geometry::histogram_of(std::vector<double>{-1.7e308, 1.7e308}, 2).counts, (std::vector<int64_t>{1, 1}));
    EXPECT_THROW(geometry::histogram_of(values, 0), Error);
}

TEST(GeometryStatistics, DensityOfAGrid) {
    Array<float, 2> points({40000, 3});
    for (int i = 0; i < 40000; ++i) {
        points.data()[3 * i] = 0.5f * static_cast<float>(i % 200);
        points.data()[3 * i + 1] = 0.5f * static_cast<float>(i / 200);
        points.data()[3 * i + 2] = 7;
    }
    const PointDensity density = geometry::point_density(points.view());
    EXPECT_EQ(density.points, 40000);
    EXPECT_NEAR(density.spacing, 0.5, 1e-6);
    EXPECT_NEAR(density.mean_spacing, 0.5, 1e-6);
    EXPECT_NEAR(density.per_area, 4, 0.2);
    EXPECT_NEAR(density.per_volume, 2, 0.1);  // a layer of cubes two units high
    points.data()[0] = NAN;
    EXPECT_EQ(geometry::point_density(points.view()).points, 39999);
    std::fill_n(points.data(), points.elements(), 1.0f);
    EXPECT_EQ(geometry::point_density(points.view()).spacing, 0);
    EXPECT_EQ(geometry::point_density(points.view().slice(0, 1)).per_area, 0);
    EXPECT_EQ(geometry::point_density(points.view().slice(0, 0)).points, 0);
}

}  // namespace
}  // namespace stipple::test
