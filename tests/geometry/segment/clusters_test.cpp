#include "stipple/geometry/clusters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"

namespace stipple::test {
namespace {

using geometry::DensityClusters;

/// The definition, pair by pair: cores, then a walk from the first core point that has no cluster yet.
DensityClusters slow_clusters(View<const float, 2> points, double radius, int64_t min_points) {
    const int64_t n = points.size(0);
    DensityClusters result;
    result.labels = Array<int32_t, 1>({n});
    result.core = Array<uint8_t, 1>({n});
    std::fill_n(result.labels.data(), n, -1);
    const auto near = [&](int64_t i, int64_t j) {
        double sum = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double d = double{points(i, axis)} - points(j, axis);
            sum += d * d;
        }
        return sum <= radius * radius;  // false for NaN
    };
    for (int64_t i = 0; i < n; ++i) {
        int64_t count = 0;
        for (int64_t j = 0; j < n; ++j) count += near(i, j);
        result.core.data()[i] = count >= min_points;
    }
    for (int64_t i = 0; i < n; ++i) {
        if (!result.core.data()[i] || result.labels.data()[i] >= 0) continue;
        const auto number = static_cast<int32_t>(result.count++);
        std::deque<int64_t> open = {i};
        result.labels.data()[i] = number;
        while (!open.empty()) {
            const int64_t at = open.front();
            open.pop_front();
            for (int64_t j = 0; j < n; ++j) {
                if (result.labels.data()[j] >= 0 || !near(at, j)) continue;
                result.labels.data()[j] = number;  // a border point keeps the first, which is the lowest
                if (result.core.data()[j]) open.push_back(j);
            }
        }
    }
    return result;
}

void expect_same(const Array<float, 2>& points, double radius, int64_t min_points) {
    const DensityClusters expected = slow_clusters(points.view(), radius, min_points),
                          found = geometry::density_clusters(points.view(), radius, min_points);
    EXPECT_EQ(found.count, expected.count);
    for (int64_t i = 0; i < points.size(0); ++i) {
        ASSERT_EQ(found.core.data()[i], expected.core.data()[i]) << "point " << i;
        ASSERT_EQ(found.labels.data()[i], expected.labels.data()[i]) << "point " << i;
    }
}

/// Heaps of different density and scattered points between them.
Array<float, 2> heaps(int64_t n, uint64_t seed, int dimensions = 3) {
    const Rng rng(seed);
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < n; ++i) {
        const auto heap = static_cast<uint64_t>(i % 7);
        for (int axis = 0; axis < 3; ++axis) {
            const float centre = 4 * rng.uniform(1000000 + 3 * heap + static_cast<uint64_t>(axis));
            const float spread = 0.05f * static_cast<float>(heap + 1);
            const auto draw = static_cast<uint64_t>(3 * i + axis);
            float& x = points.data()[3 * i + axis];
            x = heap == 6 ? 4 * rng.uniform(draw) : centre + spread * rng.normal(draw);
            if (axis >= dimensions) x = 0;
        }
    }
    return points;
}

TEST(GeometryClusters, AgreeWithTheDefinition) {
    for (const int dimensions : {1, 2, 3})
        for (const double radius : {0.02, 0.1, 0.4, 3.0})
            for (const int64_t least : {1, 2, 5, 20}) {
                SCOPED_TRACE(testing::Message() << dimensions << "d, radius " << radius << ", " << least << " points");
                expect_same(heaps(900, 5 + static_cast<uint64_t>(dimensions), dimensions), radius, least);
            }
}

TEST(GeometryClusters, RegularGridsAtTheRadius) {
    Array<float, 2> points({1000, 3});
    for (int i = 0; i < 1000; ++i) {
        const int at[3] = {i % 10, i / 10 % 10, i / 100};
        for (int axis = 0; axis < 3; ++axis) points.data()[3 * i + axis] = 0.25f * static_cast<float>(at[axis]);
    }
    for (const double radius : {0.2, 0.25, 0.36, 0.5})
        for (const int64_t least : {2, 4, 7, 8}) expect_same(points, radius, least);
}

TEST(GeometryClusters, StraysDuplicatesAndPointsWithoutAPlace) {
    Array<float, 2> points = heaps(400, 2);
    for (int i = 0; i < 50; ++i) std::copy_n(points.data(), 3, points.data() + 3 * (100 + i));  // duplicates
    points.data()[30] = NAN;
    points.data()[61] = HUGE_VALF;
    points.data()[90] = 3e7f;  // so far away that cells cannot be numbered in a row
    points.data()[93] = -3e7f;
    expect_same(points, 0.1, 5);
    EXPECT_THROW(geometry::density_clusters(points.view(), 1e-6, 5), Error);
    expect_same(points, 1e30, 5);
    Array<float, 2> zeros({9, 3});
    std::fill_n(zeros.data(), 27, 0.0f);
    expect_same(zeros, 1e30, 5);
    expect_same(zeros, 1e-30, 5);
    expect_same(Array<float, 2>({0, 3}), 1, 5);
}

TEST(GeometryClusters, ThreadsDoNotMatter) {
    const Array<float, 2> points = heaps(30000, 8);
    set_threads(1);
    const DensityClusters one = geometry::density_clusters(points.view(), 0.05, 8);
    set_threads(3);
    const DensityClusters three = geometry::density_clusters(points.view(), 0.05, 8);
    set_threads(0);
    EXPECT_TRUE(std::equal(one.labels.span().begin(), one.labels.span().end(), three.labels.span().begin()));
    EXPECT_GT(one.count, 3);
}

TEST(GeometryClusters, Refuse) {
    const Array<float, 2> points = heaps(10, 1), flat({10, 2});
    EXPECT_THROW(geometry::density_clusters(points.view(), 0, 5), Error);
    EXPECT_THROW(geometry::density_clusters(points.view(), NAN, 5), Error);
    EXPECT_THROW(geometry::density_clusters(points.view(), 1, 0), Error);
    EXPECT_THROW(geometry::density_clusters(flat.view(), 1, 5), Error);
}

}  // namespace
}  // namespace stipple::test
