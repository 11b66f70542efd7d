#include "stipple/ops/soft_project.h"

#include <limits>

#include "stipple/ops/interpolate.h"
#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::Neighbours;

class SoftProject : public OnDevice {
protected:
    struct Result {
        Array<float, 2> weights, projected;
    };
    Result project(const Array<float, 2>& points, const Array<float, 2>& queries, const Array<int32_t, 2>& indices,
                   const Layout& layout, float t, float min_sigma) const {
        const auto points_there = upload(points), queries_there = upload(queries);
        const auto indices_there = upload(indices);
        const auto t_there = upload(scalar(t));
        Guarded<float, 2> weights({indices.size(0), indices.size(1)}, device()),
            projected({indices.size(0), 3}, device());
        ops::soft_project(Clouds(points_there.view(), layout.rows), Clouds(queries_there.view(), layout.batch),
                          Neighbours(indices_there.view(), layout.batch), t_there.view(), min_sigma, weights.view(),
                          projected.view());
        return {weights.get(), projected.get()};
    }

    static Array<float, 1> scalar(float value) {
        Array<float, 1> array({1});
        array.data()[0] = value;
        return array;
    }
};
STIPPLE_ON_EVERY_DEVICE(SoftProject);

struct Naive {
    std::vector<double> weights, projected;
};

/// The formula in double. Rows whose neighbours are all missing stay 0.
Naive naive(const std::vector<double>& points, const std::vector<double>& queries, const Array<int32_t, 2>& indices,
            const Layout& layout, double t, double min_sigma) {
    const int64_t m = indices.size(0), k = indices.size(1);
    const double sigma = std::max(t * t, min_sigma);
    Naive result{std::vector<double>(m * k), std::vector<double>(3 * m)};
    for (int64_t i = 0; i < m; ++i) {
        std::vector<double> d(k, INFINITY);
        double nearest = INFINITY, sum = 0;
        for (int64_t j = 0; j < k; ++j) {
            const int64_t row = named_row(indices, layout.batch, layout.rows, i * k + j);
            if (row < 0) continue;
            d[j] = 0;
            for (int axis = 0; axis < 3; ++axis) d[j] += std::pow(points[3 * row + axis] - queries[3 * i + axis], 2);
            nearest = std::min(nearest, d[j]);
        }
        for (int64_t j = 0; j < k; ++j) sum += std::isfinite(d[j]) ? std::exp(-(d[j] - nearest) / sigma) : 0;
        for (int64_t j = 0; j < k; ++j) {
            if (!std::isfinite(d[j])) continue;
            const double w = std::exp(-(d[j] - nearest) / sigma) / sum;
            const int64_t row = named_row(indices, layout.batch, layout.rows, i * k + j);
            result.weights[i * k + j] = w;
            for (int axis = 0; axis < 3; ++axis) result.projected[3 * i + axis] += w * points[3 * row + axis];
        }
    }
    return result;
}

TEST_P(SoftProject, WeightsAndPositions) {
    for (const Layout& layout : layouts()) {
        for (int64_t k : {0, 1, 7, 20}) {
            for (float t : {1.0f, 0.3f, -0.3f, 1e-3f, 1e-20f, 1e3f}) {
                const auto points = make_features(layout.rows.rows(), 3),
                           queries = make_features(layout.batch.rows(), 3, 2);
                const auto indices = make_indices(layout.batch, k, layout.rows);
                const auto found = project(points, queries, indices, layout, t, 0);
                const auto wanted = naive(doubles(points), doubles(queries), indices, layout, t, 0);
                for (size_t i = 0; i < wanted.weights.size(); ++i)
                    ASSERT_NEAR(found.weights.data()[i], wanted.weights[i], 1e-7) << t << " " << i;
                for (size_t i = 0; i < wanted.projected.size(); ++i)
                    ASSERT_NEAR(found.projected.data()[i], wanted.projected[i], 1e-7) << t << " " << i;
            }
        }
    }
}

/// For every query the k nearest by distance, ties to the lowest index.
Array<int32_t, 2> nearest(const Array<float, 2>& points, const Array<float, 2>& queries, int64_t k) {
    Array<int32_t, 2> indices({queries.size(0), k});
    for (int64_t i = 0; i < queries.size(0); ++i) {
        std::vector<std::pair<float, int32_t>> order;
        for (int64_t p = 0; p < points.size(0); ++p)
            order.emplace_back(distance_sq(points.data() + 3 * p, queries.data() + 3 * i), static_cast<int32_t>(p));
        std::stable_sort(order.begin(), order.end());
        for (int64_t j = 0; j < k; ++j) indices.data()[i * k + j] = order[j].second;
    }
    return indices;
}

TEST_P(SoftProject, AtTemperatureZeroTheNearestPointTwiceTheSame) {
    for (Kind kind : {Kind::uniform, Kind::lattice, Kind::duplicated, Kind::all_equal, Kind::huge, Kind::tiny}) {
        const int64_t n = 60, m = 25, k = 8;
        const auto points = make_cloud(kind, n, 1), queries = make_cloud(kind, m, 2);
        const Layout layout = {Batch::single(m), Batch::single(n)};
        const auto indices = nearest(points, queries, k);
        for (float t : {0.0f, -0.0f, 1e-30f}) {
            if (t != 0 && kind != Kind::uniform) continue;  // a tie is one point at t = 0 only
            const auto once = project(points, queries, indices, layout, t, 0);
            for (int64_t i = 0; i < m; ++i) {
                EXPECT_EQ(once.weights.data()[i * k], 1.0f);
                for (int64_t j = 1; j < k; ++j) EXPECT_EQ(once.weights.data()[i * k + j], 0.0f);
                const float* p = points.data() + 3 * indices.data()[i * k];
                EXPECT_EQ(0, std::memcmp(once.projected.data() + 3 * i, p, 12)) << to_string(kind) << i;
            }
            const auto again = project(points, once.projected, nearest(points, once.projected, k), layout, t, 0);
            expect_same_bits(once.projected, again.projected, to_string(kind));
        }
    }
}

TEST_P(SoftProject, TiesGoToTheLowestIndexInWhateverOrderTheyCome) {
    Array<float, 2> points({3, 3}), queries({1, 3});
    std::fill_n(points.data(), 9, 0.0f), std::fill_n(queries.data(), 3, 0.0f);
    points.data()[0] = 1, points.data()[3] = -1, points.data()[6] = 5;
    Array<int32_t, 2> indices({1, 4});
    const int32_t order[] = {2, 1, -1, 0};
    std::copy_n(order, 4, indices.data());
    const auto found = project(points, queries, indices, {Batch::single(1), Batch::single(3)}, 0, 0);
    EXPECT_EQ(found.projected.data()[0], 1.0f);
    EXPECT_EQ(found.weights.data()[3], 1.0f);
}

TEST_P(SoftProject, TheClampHoldsAndNonFiniteNeighboursAreLeftOut) {
    const auto points = make_cloud(Kind::nonfinite, 30), queries = make_features(5, 3, 2);
    const auto indices = make_indices(Batch::single(5), 9, Batch::single(30));
    const Layout layout = {Batch::single(5), Batch::single(30)};
    const auto clamped = project(points, queries, indices, layout, 0.01f, 0.25f);
    const auto plain = project(points, queries, indices, layout, 0.5f, 0);
    expect_same_bits(clamped.projected, plain.projected, "clamped");
    for (float w : plain.weights.span()) EXPECT_TRUE(std::isfinite(w));
    for (int64_t e = 0; e < 45; ++e) {
        const int32_t index = indices.data()[e];
        if (index >= 0 && index < 30 && index % 7 == 3) {
            EXPECT_EQ(plain.weights.data()[e], 0.0f);
        }
    }
    // Nobody at all, a query that is not finite, and a temperature that is not a number.
    Array<float, 2> lost({1, 3});
    lost.data()[0] = NAN, lost.data()[1] = lost.data()[2] = 0;
    Array<int32_t, 2> one({1, 1}), none({1, 1});
    one.data()[0] = 0, none.data()[0] = -1;
    const Layout single = {Batch::single(1), Batch::single(30)};
    EXPECT_EQ(project(points, lost, one, single, 1, 0).projected.data()[1], 0.0f);
    EXPECT_EQ(project(points, make_features(1, 3), none, single, 0, 0).projected.data()[1], 0.0f);
    EXPECT_TRUE(std::isnan(project(points, make_features(1, 3), one, single, NAN, 0).projected.data()[1]));
}

TEST_P(SoftProject, GradientsMatchFiniteDifferences) {
    const Layout layout = {Batch::ragged({0, 4, 4, 9}), Batch::ragged({0, 8, 9, 30})};
    const int64_t m = 9, n = 30, k = 6;
    const auto points = make_features(n, 3), queries = make_features(m, 3, 2);
    const auto indices = make_indices(layout.batch, k, layout.rows, 5);
    const auto of_projected = random_array<float, 2>({m, 3}, 3), of_weights = random_array<float, 2>({m, k}, 4);
    for (float t : {0.4f, -0.7f, 2.0f}) {
        for (float min_sigma : {0.0f, 0.3f}) {
            for (int which : {1, 2, 3}) {  // bit 0: through the position, bit 1: through the weights
                const auto points_there = upload(points), queries_there = upload(queries);
                const auto indices_there = upload(indices);
                const auto t_there = upload(scalar(t));
                const auto projected_there = upload(of_projected), weights_there = upload(of_weights);
                Guarded<float, 2> dL_dqueries({m, 3}, device());
                Guarded<float, 1> dL_dt({1}, device());
                const View<const float, 2> nothing;
                ops::soft_project_backward(
                    Clouds(points_there.view(), layout.rows), Clouds(queries_there.view(), layout.batch),
                    Neighbours(indices_there.view(), layout.batch), t_there.view(), min_sigma,
                    which & 1 ? projected_there.view() : nothing, which & 2 ? weights_there.view() : nothing,
                    dL_dqueries.view(), dL_dt.view());
                const auto loss = [&](const std::vector<double>& x, double temperature) {
                    const auto result = naive(doubles(points), x, indices, layout, temperature, min_sigma);
                    double sum = 0;
                    for (int64_t i = 0; i < 3 * m && (which & 1); ++i)
                        sum += result.projected[i] * of_projected.data()[i];
                    for (int64_t i = 0; i < k * m && (which & 2); ++i) sum += result.weights[i] * of_weights.data()[i];
                    return sum;
                };
                const auto found = dL_dqueries.get();
                const auto x = doubles(queries);
                for (int64_t i = 0; i < 3 * m; ++i) {
                    const double wanted =
                        central_difference([&](const auto& changed) { return loss(changed, t); }, x, i);
                    EXPECT_NEAR(found.data()[i], wanted, 1e-6 * (1 + std::abs(wanted))) << t << " " << i;
                }
                const double wanted =
                    central_difference([&](const auto& changed) { return loss(x, changed[0]); }, {t}, 0);
                const float found_t = dL_dt.get().data()[0];
                EXPECT_NEAR(found_t, wanted, 1e-6 * (1 + std::abs(wanted))) << t;
                if (t * t <= min_sigma) {
                    EXPECT_EQ(found_t, 0.0f);
                }
            }
        }
    }
}

TEST_P(SoftProject, GradientsAtTheLimitAreFinite) {
    const int64_t m = 700, n = 50, k = 5;
    const auto points = make_features(n, 3), queries = make_features(m, 3, 2);
    const auto indices = make_indices(Batch::single(m), k, Batch::single(n));
    const auto gradient = random_array<float, 2>({m, 3}, 3);
    const auto points_there = upload(points), queries_there = upload(queries), gradient_there = upload(gradient);
    const auto indices_there = upload(indices);
    for (float t : {0.0f, 1e-20f, 1e20f, std::numeric_limits<float>::min()}) {
        const auto t_there = upload(scalar(t));
        Guarded<float, 2> dL_dqueries({m, 3}, device());
        Guarded<float, 1> dL_dt({1}, device());
        ops::soft_project_backward(points_there.view(), queries_there.view(), indices_there.view(), t_there.view(), 0,
                                   gradient_there.view(), {}, dL_dqueries.view(), dL_dt.view());
        EXPECT_TRUE(std::isfinite(dL_dt.get().data()[0])) << t;
        const auto found = dL_dqueries.get();
        for (float g : found.span()) ASSERT_TRUE(std::isfinite(g)) << t;
    }
}

TEST_P(SoftProject, NoQueriesGiveNoGradient) {
    const auto points_there = upload(make_features(5, 3));
    const auto t_there = upload(scalar(1));
    const Array<float, 2> queries({0, 3}, device());
    const Array<int32_t, 2> indices({0, 4}, device());
    Array<float, 2> dL_dqueries({0, 3}, device());
    Guarded<float, 1> dL_dt({1}, device());
    ops::soft_project_backward(points_there.view(), queries.view(), indices.view(), t_there.view(), 0, {}, {},
                               dL_dqueries.view(), dL_dt.view());
    EXPECT_EQ(dL_dt.get().data()[0], 0.0f);
}

TEST(SoftProjectCpu, SameOnAnyNumberOfThreads) {
    const int64_t m = 3000, n = 200, k = 7;
    const auto points = make_features(n, 3), queries = make_features(m, 3, 2);
    const auto indices = make_indices(Batch::single(m), k, Batch::single(n));
    const float t = 0.2f;
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> results;
        for (int64_t columns : {k, int64_t{3}, int64_t{3}}) results.emplace_back(std::array<int64_t, 2>{m, columns});
        results.emplace_back(std::array<int64_t, 2>{1, 1});
        const View<const float, 1> temperature(&t, {1});
        ops::soft_project(points.view(), queries.view(), indices.view(), temperature, 0, results[0].view(),
                          results[1].view());
        ops::soft_project_backward(points.view(), queries.view(), indices.view(), temperature, 0, results[1].view(),
                                   results[0].view(), results[2].view(), View<float, 1>(results[3].data(), {1}));
        return results;
    });
}

TEST(SoftProjectCpu, SaysWhatIsWrong) {
    const auto points = make_features(5, 3), queries = make_features(4, 3);
    const Array<int32_t, 2> indices({4, 2});
    const Array<float, 1> t({1}), two({2});
    Array<float, 2> weights({4, 2}), projected({4, 3});
    const Neighbours near(indices.view());
    const auto run = [&](const Clouds& p, const Clouds& x, View<const float, 1> temperature, float min_sigma,
                         View<float, 2> w, View<float, 2> r) {
        return bad_argument_of([&] { ops::soft_project(p, x, near, temperature, min_sigma, w, r); });
    };
    EXPECT_EQ(run(make_features(5, 2).view(), queries.view(), t.view(), 0, weights.view(), projected.view()),
              "soft_project: points must be [n, 3], got [5, 2]");
    EXPECT_EQ(run(points.view(), points.view(), t.view(), 0, weights.view(), projected.view()),
              "soft_project: 4 rows of indices for 5 queries");
    EXPECT_EQ(run(points.view(), queries.view(), two.view(), 0, weights.view(), projected.view()),
              "soft_project: temperature must be [1], got [2]");
    EXPECT_EQ(run(points.view(), queries.view(), t.view(), -1, weights.view(), projected.view()),
              "soft_project: min_sigma must be finite and not negative, got -1");
    EXPECT_EQ(run(points.view(), queries.view(), t.view(), 0, projected.view(), projected.view()),
              "soft_project: weights must be [4, 2], got [4, 3]");
    EXPECT_EQ(run(points.view(), queries.view(), View<const float, 1>(nullptr, {1}, kFakeCuda), 0, weights.view(),
                  projected.view()),
              "soft_project: points on cpu, temperature on cuda:0");
    Array<float, 1> dL_dt({1});
    EXPECT_EQ(bad_argument_of([&] {
                  ops::soft_project_backward(points.view(), queries.view(), near, t.view(), 0, weights.view(), {},
                                             projected.view(), dL_dt.view());
              }),
              "soft_project_backward: dL_dprojected must be [4, 3], got [4, 2]");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::soft_project_backward(points.view(), queries.view(), near, t.view(), 0, {}, {}, projected.view(),
                                             View<float, 1>(nullptr, {2}));
              }),
              "soft_project_backward: dL_dtemperature must be [1], got [2]");
}

TEST(SoftProjectCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const auto points = make_features(5, 3), queries = make_features(4, 3);
    const auto indices = make_indices(Batch::single(4), 2, Batch::single(5));
    const Clouds p(points.view()), x(queries.view());
    const Neighbours near(indices.view());
    const float t = 0.5f;
    Array<float, 2> weights({4, 2}), projected({4, 3}), dL_dqueries({4, 3});
    Array<float, 1> dL_dt({1});
    const auto run = [&] {
        ops::soft_project(p, x, near, View<const float, 1>(&t, {1}), 0, weights.view(), projected.view());
        ops::soft_project_backward(p, x, near, View<const float, 1>(&t, {1}), 0, projected.view(), {},
                                   dL_dqueries.view(), dL_dt.view());
    };
    EXPECT_GT(for_each_allocation_failure(run), can_fail_allocations() ? 0 : -1);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
