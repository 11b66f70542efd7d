// Spacing and candidates of a cloud: what an upsampler is given.

#include "stipple/data/upsampling_points.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/ops/knn.h"
#include "tests/support/expect_error.h"

namespace stipple::data {
namespace {

/// Random points of a curved sheet above the unit square.
Array<float, 2> sheet(int64_t n, float scale = 1) {
    Array<float, 2> points({n, 3});
    const Rng rng(3, 1);
    for (int64_t i = 0; i < n; ++i) {
        const float x = rng.uniform(2 * i), y = rng.uniform(2 * i + 1);
        const float row[] = {scale * x, scale * y, scale * 0.1f * x * y};
        std::copy_n(row, 3, points.data() + 3 * i);
    }
    return points;
}

Array<int32_t, 2> neighbours_among(const Array<float, 2>& points, int64_t k) {
    Array<int32_t, 2> indices({points.size(0), k});
    ops::knn(ops::PointIndex(points.view()), points.view(), indices.view(), {});
    return indices;
}

TEST(MeanSpacing, IsTheRootOfTheAreaOfAPoint) {
    Array<float, 2> grid({400, 3});
    for (int64_t i = 0; i < 400; ++i) {
        const float row[] = {0.5f * static_cast<float>(i % 20), 0.5f * static_cast<float>(i / 20), 7};
        std::copy_n(row, 3, grid.data() + 3 * i);
    }
    // The 8th neighbour of a grid's inner point lies on the diagonal of a cell.
    EXPECT_NEAR(mean_spacing(grid.view()), 0.5 * std::sqrt(2 * std::numbers::pi / 8), 1e-6);
    for (const int64_t n : {300, 4096, 20000}) {
        const float spacing = mean_spacing(sheet(n).view());
        EXPECT_NEAR(spacing * std::sqrt(static_cast<double>(n)), 1, 0.06) << n;
        EXPECT_NEAR(mean_spacing(sheet(n, 8).view()), 8 * spacing, 1e-5) << n;
    }
}

TEST(MeanSpacing, OfFewPointsUsesThoseThatThereAre) {
    const float three[] = {0, 0, 0, 1, 0, 0, 3, 0, 0};
    EXPECT_EQ(mean_spacing({three, {0, 3}}), 0);
    EXPECT_EQ(mean_spacing({three, {1, 3}}), 0);
    EXPECT_NEAR(mean_spacing({three, {2, 3}}), std::sqrt(std::numbers::pi), 1e-6);
    EXPECT_NEAR(mean_spacing({three, {3, 3}}), 3 * std::sqrt(std::numbers::pi / 2), 1e-6);  // of 2, 3 and 3
    const std::vector<float> same(30, 2.5f);
    EXPECT_EQ(mean_spacing({same.data(), {10, 3}}), 0);
    Array<float, 2> holed = sheet(1000);
    const float spacing = mean_spacing(holed.view());
    for (int64_t i = 0; i < 30; ++i) holed.view()(i * 30, 1) = std::numeric_limits<float>::quiet_NaN();
    EXPECT_NEAR(mean_spacing(holed.view()), spacing, 0.05f * spacing);
    EXPECT_ERROR(mean_spacing({three, {3, 2}}), bad_argument, "points must be [n, 3]");
}

TEST(NeighbourQueries, AreAFunctionOfPointAndNumber) {
    const Array<float, 2> points = sheet(5000);
    const Array<int32_t, 2> near = neighbours_among(points, kQueryNeighbours);
    std::vector<int32_t> all(5000);
    for (int32_t i = 0; i < 5000; ++i) all[static_cast<size_t>(i)] = i;
    std::vector<float> whole(5000 * 4 * 3), again(whole.size());
    neighbour_queries(points.view(), near.view(), all, 4, 17, whole.data());
    const int before = threads();
    set_threads(1);
    neighbour_queries(points.view(), near.view(), all, 4, 17, again.data());
    set_threads(before);
    EXPECT_EQ(whole, again);
    const std::vector<int32_t> some = {4321, 7, 7, 0};
    std::vector<float> few(4 * 3 * 3);
    neighbour_queries(points.view(), near.view(), some, 3, 17, few.data());
    for (size_t i = 0; i < some.size(); ++i)
        for (size_t j = 0; j < 9; ++j) EXPECT_EQ(few[9 * i + j], whole[12 * static_cast<size_t>(some[i]) + j]);
    neighbour_queries(points.view(), near.view(), all, 4, 18, again.data());
    EXPECT_NE(whole, again);
}

TEST(NeighbourQueries, FillTheTrianglesOfNeighbours) {
    // A point among ten neighbours at the corners of a regular polygon: the mean of a triangle's points is its middle.
    Array<float, 2> points({11, 3});
    Array<int32_t, 2> near({11, 11});
    for (int64_t i = 0; i < 11; ++i)
        for (int64_t j = 0; j < 11; ++j) near.view()(i, j) = static_cast<int32_t>((i + j) % 11);
    for (int64_t i = 0; i < 11; ++i) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / 10;
        const float row[] = {i == 0 ? 0 : static_cast<float>(std::cos(angle)),
                             i == 0 ? 0 : static_cast<float>(std::sin(angle)), 1};
        std::copy_n(row, 3, points.data() + 3 * i);
    }
    constexpr int64_t kCount = 20000;
    const int32_t which[] = {0};
    std::vector<float> queries(3 * kCount);
    neighbour_queries(points.view(), near.view(), which, kCount, 5, queries.data());
    Vec3d mean;
    double square = 0;
    for (int64_t i = 0; i < kCount; ++i) {
        const Vec3d q = {queries[3 * i], queries[3 * i + 1], queries[3 * i + 2]};
        EXPECT_LE(q.x * q.x + q.y * q.y, 1 + 1e-5);
        EXPECT_NEAR(q.z, 1, 1e-6);
        mean = mean + (1.0 / kCount) * q;
        square += (q.x * q.x + q.y * q.y) / kCount;
    }
    EXPECT_NEAR(mean.x, 0, 0.01);
    EXPECT_NEAR(mean.y, 0, 0.01);
    // u^2 + v^2 + 2 u v cos, of means 1/6, 1/6 and 2/12, where cos over pairs of different corners is -1/9.
    EXPECT_NEAR(square, 1.0 / 3 - 1.0 / 54, 0.005);
}

TEST(NeighbourQueries, ReachBeyondARim) {
    // The origin is at the rim: all its neighbours lie at x >= 1.
    Array<float, 2> points({11, 3});
    Array<int32_t, 2> near({11, 11});
    for (int64_t i = 0; i < 11; ++i)
        for (int64_t j = 0; j < 11; ++j) near.view()(i, j) = static_cast<int32_t>((i + j) % 11);
    for (int64_t i = 0; i < 11; ++i) {
        const float row[] = {i == 0 ? 0.0f : 1.0f, static_cast<float>(i % 3), 0};
        std::copy_n(row, 3, points.data() + 3 * i);
    }
    constexpr int64_t kCount = 4000;
    const int32_t which[] = {0};
    std::vector<float> queries(3 * kCount);
    neighbour_queries(points.view(), near.view(), which, kCount, 5, queries.data());
    int64_t beyond = 0;
    for (int64_t i = 0; i < kCount; ++i) {
        EXPECT_LE(std::abs(queries[3 * i]), 1 + 1e-5);
        beyond += queries[3 * i] < 0;
    }
    EXPECT_NEAR(static_cast<double>(beyond) / kCount, 0.5, 0.03);
}

TEST(NeighbourQueries, MissingNeighboursAreThePointItself) {
    const Array<float, 2> points = sheet(3);
    Array<int32_t, 2> near({3, 4});
    for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 4; ++j) near.view()(i, j) = j == 0 ? static_cast<int32_t>(i) : -1;
    const std::vector<int32_t> which = {2, 1};
    std::vector<float> queries(2 * 5 * 3);
    neighbour_queries(points.view(), near.view(), which, 5, 1, queries.data());
    for (size_t i = 0; i < queries.size(); ++i)
        EXPECT_EQ(queries[i], points.view()(which[i / 15], static_cast<int64_t>(i % 3)));
    const Array<int32_t, 2> alone = neighbours_among(points, 1), pairs = neighbours_among(points, 2);
    neighbour_queries(points.view(), alone.view(), which, 5, 1, queries.data());
    for (size_t i = 0; i < queries.size(); ++i)
        EXPECT_EQ(queries[i], points.view()(which[i / 15], static_cast<int64_t>(i % 3)));
    neighbour_queries(points.view(), pairs.view(), which, 5, 1, queries.data());  // on segments
    const std::vector<int32_t> wrong = {3};
    EXPECT_ERROR(neighbour_queries(points.view(), near.view(), wrong, 1, 1, queries.data()), bad_argument,
                 "point 3 of 3");
}

}  // namespace
}  // namespace stipple::data
