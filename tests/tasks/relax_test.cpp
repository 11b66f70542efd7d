#include "stipple/tasks/upsample/relax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/poisson_disk.h"
#include "stipple/tasks/upsample/cloud_search.h"
#include "tests/support/devices.h"

namespace stipple::tasks {
namespace {

/// Random points of the unit sphere.
Array<float, 2> sphere_points(int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    const Rng rng(seed, 1);
    for (int64_t i = 0; i < n; ++i) {
        double row[3], square = 0;
        for (int c = 0; c < 3; ++c) row[c] = rng.normal(static_cast<uint64_t>(3 * i + c)), square += row[c] * row[c];
        for (int c = 0; c < 3; ++c) points.view()(i, c) = static_cast<float>(row[c] / std::sqrt(square));
    }
    return points;
}

Array<float, 2> even_points(int64_t n, int64_t of) {
    const Array<float, 2> all = sphere_points(of, 7);
    Array<int32_t, 1> left({n});
    ops::poisson_disk(all.view(), ops::Batch::single(n), left.view());
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < n; ++i) std::copy_n(all.data() + 3 * left.data()[i], 3, points.data() + 3 * i);
    return points;
}

/// Mean squared distance of the sphere to the nearest of the points, times their number over its area: 0.1604 for the
/// densest arrangement of a plane.
double unevenness(const Array<float, 2>& points) {
    const Array<float, 2> surface = sphere_points(40000, 11);
    Array<int32_t, 2> nearest({surface.size(0), 1});
    Array<float, 2> distances_sq({surface.size(0), 1});
    ops::knn(ops::PointIndex(points.view()), surface.view(), nearest.view(), distances_sq.view());
    double sum = 0;
    for (const float square : distances_sq.span()) sum += square;
    return sum / static_cast<double>(surface.size(0)) * static_cast<double>(points.size(0)) / (4 * std::numbers::pi);
}

/// Mean distance of the points from the sphere, to which they go.
double project(Array<float, 2>& points) {
    double off = 0;
    for (int64_t i = 0; i < points.size(0); ++i) {
        float* row = points.data() + 3 * i;
        const float radius = std::hypot(row[0], row[1], row[2]);
        off += std::abs(radius - 1) / static_cast<double>(points.size(0));
        for (int c = 0; c < 3; ++c) row[c] /= radius;
    }
    return off;
}

TEST(Relax, SpreadsPointsEvenly) {
    Array<float, 2> points = even_points(4096, 8192);
    const double before = unevenness(points), spacing = std::sqrt(4 * std::numbers::pi / 4096);
    relax(points.view(), points.size(0));
    EXPECT_LT(project(points), 0.01 * spacing);
    EXPECT_LT(unevenness(points), 0.83 * before);
    EXPECT_GT(unevenness(points), 0.16);  // of a honeycomb
}

TEST(Relax, LeavesTheOthersWhereTheyAre) {
    Array<float, 2> points = even_points(1000, 2000);
    const std::vector<float> before(points.data(), points.data() + points.elements());
    relax(points.view(), 300);
    EXPECT_TRUE(std::equal(before.begin() + 900, before.end(), points.data() + 900));
    EXPECT_FALSE(std::equal(before.begin(), before.begin() + 900, points.data()));
    double farthest = 0;
    for (size_t i = 0; i < 300; ++i)
        farthest = std::max(farthest, std::hypot(double{points.data()[3 * i]} - before[3 * i],
                                                 double{points.data()[3 * i + 1]} - before[3 * i + 1],
                                                 double{points.data()[3 * i + 2]} - before[3 * i + 2]));
    EXPECT_LT(farthest, std::sqrt(4 * std::numbers::pi / 1000));
    relax(points.view(), 0);
}

TEST(Relax, DoesNotDependOnThreads) {
    Array<float, 2> points = even_points(3000, 6000), again = even_points(3000, 6000);
    relax(points.view(), 3000);
    const int before = threads();
    set_threads(1);
    relax(again.view(), 3000);
    set_threads(before);
    EXPECT_TRUE(std::equal(points.data(), points.data() + points.elements(), again.data()));
}

TEST(Relax, StaysFiniteWherePointsCoincide) {
    Array<float, 2> same({50, 3});
    std::fill_n(same.data(), 150, 2.0f);
    relax(same.view(), 50);
    for (const float x : same.span()) EXPECT_EQ(x, 2);
    Array<float, 2> line({50, 3});
    for (int64_t i = 0; i < 50; ++i)
        line.view()(i, 0) = static_cast<float>(i * i), line.view()(i, 1) = line.view()(i, 2) = 0;
    relax(line.view(), 50);
    for (int64_t i = 0; i < 50; ++i) {
        EXPECT_TRUE(std::isfinite(line.view()(i, 0)));
        EXPECT_EQ(line.view()(i, 1), 0);
    }
    Array<float, 2> few({3, 3});
    std::fill_n(few.data(), 9, 0.0f);
    relax(few.view(), 3);
}

class UpsampleOnGpu : public test::OnDevice {};
STIPPLE_ON_EVERY_GPU(UpsampleOnGpu);

TEST_P(UpsampleOnGpu, RelaxesToTheSameBits) {
    Array<float, 2> points = even_points(3000, 6000);
    Array<float, 2> there = upload(points);
    relax(points.view(), 2500);
    relax(there.view(), 2500);
    const Array<float, 2> back = test::download(there);
    EXPECT_TRUE(std::equal(points.data(), points.data() + points.elements(), back.data()));
}

TEST_P(UpsampleOnGpu, SearchesAnswerTheSame) {
    const Array<float, 2> points = sphere_points(5000, 3), places = sphere_points(700, 4);
    const CloudSearch here(points.view()), there(points.view(), device());
    const auto answers = [&](const CloudSearch& search) {
        Array<int32_t, 2> near({700, 32});
        Array<float, 2> squares({700, 32}), normals({5000, 3});
        Array<float, 1> curvatures({5000});
        search.knn(places.view(), near.view(), squares.view());
        search.estimate_normals(normals.view(), curvatures.view(), 16);
        std::vector<float> all(squares.data(), squares.data() + squares.elements());
        all.insert(all.end(), near.data(), near.data() + near.elements());
        all.insert(all.end(), normals.data(), normals.data() + normals.elements());
        all.insert(all.end(), curvatures.data(), curvatures.data() + curvatures.elements());
        return all;
    };
    EXPECT_EQ(answers(here), answers(there));
}

}  // namespace
}  // namespace stipple::tasks
