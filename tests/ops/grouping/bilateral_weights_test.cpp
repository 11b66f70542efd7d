#include "stipple/ops/bilateral_weights.h"

#include "stipple/ops/group.h"
#include "stipple/ops/scatter_add.h"
#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::Neighbours;

class BilateralWeights : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(BilateralWeights);

std::vector<double> naive_similarity(const std::vector<double>& rows, const std::vector<double>& queries, int64_t c,
                                     const Array<int32_t, 2>& indices, const Layout& layout, double beta) {
    std::vector<double> similarity(indices.elements());
    for (int64_t e = 0; e < indices.elements(); ++e) {
        const int64_t row = named_row(indices, layout.batch, layout.rows, e), i = e / indices.size(1);
        double square = 0;
        for (int64_t l = 0; l < c && row >= 0; ++l) square += std::pow(rows[row * c + l] - queries[i * c + l], 2);
        similarity[e] = row < 0 ? 0 : std::exp(-beta * square);
    }
    return similarity;
}

TEST_P(BilateralWeights, Similarity) {
    for (const Layout& layout : layouts()) {
        for (int64_t c : {0, 1, 3, 4, 64, 67}) {
            const int64_t m = layout.batch.rows(), k = 5;
            const auto rows = make_features(layout.rows.rows(), c), queries = make_features(m, c, 2);
            const auto indices = make_indices(layout.batch, k, layout.rows);
            const auto rows_there = upload(rows), queries_there = upload(queries);
            const auto indices_there = upload(indices);
            Guarded<float, 2> out({m, k}, device());
            ops::bilateral_similarity(Clouds(rows_there.view(), layout.rows),
                                      Clouds(queries_there.view(), layout.batch),
                                      Neighbours(indices_there.view(), layout.batch), 0.7f, out.view());
            const auto found = out.get();
            const auto wanted = naive_similarity(doubles(rows), doubles(queries), c, indices, layout, 0.7f);
            // The differences are rounded to float: |d|^2 is within 2 x 6e-8, and an exponent up to 10 here.
            for (int64_t e = 0; e < m * k; ++e) ASSERT_NEAR(found.data()[e], wanted[e], 1.5e-6 * wanted[e]) << e;
        }
    }
}

TEST_P(BilateralWeights, SimilarityGradientsMatchFiniteDifferences) {
    const Layout layout = {Batch::ragged({0, 4, 4, 9}), Batch::ragged({0, 8, 9, 20})};
    const int64_t m = 9, n = 20, k = 4, c = 5;
    const float beta = 0.8f;
    const auto rows = make_features(n, c), queries = make_features(m, c, 2);
    const auto indices = make_indices(layout.batch, k, layout.rows, 3);
    const auto gradient = random_array<float, 2>({m, k}, 4);
    const auto rows_there = upload(rows), queries_there = upload(queries), gradient_there = upload(gradient);
    const auto indices_there = upload(indices);
    const Clouds clouds(rows_there.view(), layout.rows), centres(queries_there.view(), layout.batch);
    const Neighbours neighbours(indices_there.view(), layout.batch);
    Array<float, 2> similarity({m, k}, device());
    ops::bilateral_similarity(clouds, centres, neighbours, beta, similarity.view());
    Guarded<float, 3> dL_doffsets({m, k, c}, device());
    ops::bilateral_similarity_backward(clouds, centres, neighbours, beta, similarity.view(), gradient_there.view(),
                                       dL_doffsets.view());
    const View<float, 3> offsets = dL_doffsets.view();
    const Inverse inverse(neighbours, layout.rows);
    Guarded<float, 2> dL_drows({n, c}, device()), dL_dqueries({m, c}, device());
    ops::scatter_add(View<const float, 2>(offsets.data(), {m * k, c}, device()), inverse.view(), dL_drows.view());
    ops::group_backward_centres(neighbours, layout.rows, offsets, dL_dqueries.view());
    dL_doffsets.get();

    const auto loss = [&](const std::vector<double>& r, const std::vector<double>& x) {
        const auto a = naive_similarity(r, x, c, indices, layout, beta);
        double sum = 0;
        for (int64_t e = 0; e < m * k; ++e) sum += a[e] * gradient.data()[e];
        return sum;
    };
    const auto r = doubles(rows), x = doubles(queries);
    const auto found_rows = dL_drows.get(), found_queries = dL_dqueries.get();
    for (int64_t i = 0; i < n * c; ++i)
        EXPECT_NEAR(found_rows.data()[i],
                    central_difference([&](const auto& changed) { return loss(changed, x); }, r, i), 1e-6);
    for (int64_t i = 0; i < m * c; ++i)
        EXPECT_NEAR(found_queries.data()[i],
                    central_difference([&](const auto& changed) { return loss(r, changed); }, x, i), 1e-6);
}

std::vector<double> naive_combine(const std::vector<double>& rows, const std::vector<double>& th,
                                  const std::vector<double>& psi, int64_t c, const Array<int32_t, 2>& indices,
                                  const Layout& layout, double guard) {
    const int64_t m = indices.size(0), k = indices.size(1);
    std::vector<double> out(m * c);
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t l = 0; l < c; ++l) {
            double weights = 0, sum = 0;
            for (int64_t e = i * k; e < (i + 1) * k; ++e) {
                const int64_t row = named_row(indices, layout.batch, layout.rows, e);
                if (row < 0) continue;
                weights += th[e * c + l] * psi[e * c + l];
                sum += th[e * c + l] * psi[e * c + l] * rows[row * c + l];
            }
            out[i * c + l] = sum / std::max(weights, guard);
        }
    }
    return out;
}

/// As after a ReLU: half of them 0.
Array<float, 3> rectified(std::array<int64_t, 3> shape, uint64_t seed) {
    auto values = random_array<float, 3>(shape, seed);
    for (float& x : values.span()) x = std::max(x, 0.0f);
    return values;
}

TEST_P(BilateralWeights, Combine) {
    for (const Layout& layout : layouts()) {
        for (int64_t c : {1, 3, 4, 64, 67, 200}) {
            for (int64_t k : {0, 1, 6}) {
                const int64_t m = layout.batch.rows();
                const auto rows = make_features(layout.rows.rows(), c);
                const auto indices = make_indices(layout.batch, k, layout.rows);
                const auto th = rectified({m, k, c}, 2), psi = rectified({m, k, c}, 3);
                const auto rows_there = upload(rows);
                const auto indices_there = upload(indices);
                const auto th_there = upload(th), psi_there = upload(psi);
                Guarded<float, 2> out({m, c}, device()), denominator({m, c}, device());
                ops::bilateral_combine(Clouds(rows_there.view(), layout.rows),
                                       Neighbours(indices_there.view(), layout.batch), th_there.view(),
                                       psi_there.view(), 0.01f, out.view(), denominator.view());
                const auto found = out.get(), below = denominator.get();
                const auto wanted = naive_combine(doubles(rows), doubles(th), doubles(psi), c, indices, layout, 0.01f);
                for (int64_t i = 0; i < m * c; ++i) {
                    ASSERT_NEAR(found.data()[i], wanted[i], 1.2e-7 * wanted[i]) << i;
                    ASSERT_GE(below.data()[i], 0.01f);
                }
            }
        }
    }
}

TEST_P(BilateralWeights, CombineGradientsMatchFiniteDifferences) {
    const Layout layout = {Batch::ragged({0, 4, 4, 9}), Batch::ragged({0, 8, 9, 20})};
    const int64_t m = 9, n = 20, k = 4, c = 3;
    const auto rows = make_features(n, c);
    const auto indices = make_indices(layout.batch, k, layout.rows, 3);
    const auto th = random_array<float, 3>({m, k, c}, 5, 0.1f, 1), psi = random_array<float, 3>({m, k, c}, 6, 0.1f, 1);
    const auto gradient = random_array<float, 2>({m, c}, 4);
    const auto rows_there = upload(rows), gradient_there = upload(gradient);
    const auto indices_there = upload(indices);
    const auto th_there = upload(th), psi_there = upload(psi);
    const Clouds clouds(rows_there.view(), layout.rows);
    const Neighbours neighbours(indices_there.view(), layout.batch);
    const Inverse inverse(neighbours, layout.rows);
    for (float guard : {1e-6f, 1.0f, 100.0f}) {  // never, sometimes and always active
        Array<float, 2> out({m, c}, device()), denominator({m, c}, device());
        ops::bilateral_combine(clouds, neighbours, th_there.view(), psi_there.view(), guard, out.view(),
                               denominator.view());
        Guarded<float, 3> dL_dth({m, k, c}, device()), dL_dpsi({m, k, c}, device());
        Guarded<float, 2> dL_drows({n, c}, device());
        ops::bilateral_combine_backward(clouds, neighbours, inverse.view(), th_there.view(), psi_there.view(), guard,
                                        out.view(), denominator.view(), gradient_there.view(), dL_dth.view(),
                                        dL_dpsi.view(), dL_drows.view());
        const auto r = doubles(rows), a = doubles(th), b = doubles(psi);
        const auto loss = [&](const auto& rows_of, const auto& th_of, const auto& psi_of) {
            const auto result = naive_combine(rows_of, th_of, psi_of, c, indices, layout, guard);
            double sum = 0;
            for (int64_t i = 0; i < m * c; ++i) sum += result[i] * gradient.data()[i];
            return sum;
        };
        const auto compare = [&](const auto& found, const std::vector<double>& x, const auto& f) {
            for (size_t i = 0; i < x.size(); ++i) {
                const double wanted = central_difference(f, x, i);
                EXPECT_NEAR(found.data()[i], wanted, 1e-6 * (1 + std::abs(wanted))) << guard << " " << i;
            }
        };
        compare(dL_drows.get(), r, [&](const auto& changed) { return loss(changed, a, b); });
        compare(dL_dth.get(), a, [&](const auto& changed) { return loss(r, changed, b); });
        compare(dL_dpsi.get(), b, [&](const auto& changed) { return loss(r, a, changed); });
    }
}

TEST_P(BilateralWeights, WithoutWeightsTheResultIsZero) {
    const auto rows_there = upload(make_features(3, 2));
    Array<int32_t, 2> indices({1, 2});
    indices.data()[0] = 0, indices.data()[1] = 2;
    const auto indices_there = upload(indices);
    Array<float, 3> zeros({1, 2, 2});
    std::fill_n(zeros.data(), 4, 0.0f);
    const auto zeros_there = upload(zeros);
    Guarded<float, 2> out({1, 2}, device()), denominator({1, 2}, device());
    ops::bilateral_combine(rows_there.view(), indices_there.view(), zeros_there.view(), zeros_there.view(), 1e-6f,
                           out.view(), denominator.view());
    EXPECT_EQ(out.get().data()[0], 0.0f);
    EXPECT_EQ(denominator.get().data()[1], 1e-6f);
}

TEST(BilateralWeightsCpu, SameOnAnyNumberOfThreads) {
    const Batch batch = Batch::dense(2, 300), rows = Batch::dense(2, 200);
    const int64_t m = batch.rows(), n = rows.rows(), k = 6, c = 67;
    const auto features = make_features(n, c), queries = make_features(m, c, 2);
    const auto indices = make_indices(batch, k, rows);
    const auto th = rectified({m, k, c}, 2), psi = rectified({m, k, c}, 3);
    expect_same_on_threads([&] {
        const Neighbours near(indices.view(), batch);
        const Clouds clouds(features.view(), rows);
        const Inverse inverse(near, rows);
        std::vector<Array<float, 2>> results;
        for (const auto& [height, width] :
             std::vector<std::array<int64_t, 2>>{{m, k}, {m, c}, {m, c}, {m, k * c}, {m, k * c}, {n, c}, {m, k * c}})
            results.emplace_back(std::array<int64_t, 2>{height, width});
        ops::bilateral_similarity(clouds, Clouds(queries.view(), batch), near, 0.1f, results[0].view());
        ops::bilateral_combine(clouds, near, th.view(), psi.view(), 1e-6f, results[1].view(), results[2].view());
        ops::bilateral_combine_backward(clouds, near, inverse.view(), th.view(), psi.view(), 1e-6f, results[1].view(),
                                        results[2].view(), results[1].view(),
                                        View<float, 3>(results[3].data(), {m, k, c}),
                                        View<float, 3>(results[4].data(), {m, k, c}), results[5].view());
        ops::bilateral_similarity_backward(clouds, Clouds(queries.view(), batch), near, 0.1f, results[0].view(),
                                           results[0].view(), View<float, 3>(results[6].data(), {m, k, c}));
        return results;
    });
}

TEST(BilateralWeightsCpu, SaysWhatIsWrong) {
    const auto rows = make_features(5, 3), queries = make_features(4, 3);
    const Array<int32_t, 2> indices({4, 2});
    const Array<float, 3> th({4, 2, 3});
    Array<float, 2> similarity({4, 2}), out({4, 3});
    const Neighbours near(indices.view());
    const auto similar = [&](const Clouds& x, float beta, View<float, 2> to) {
        return bad_argument_of([&] { ops::bilateral_similarity(rows.view(), x, near, beta, to); });
    };
    EXPECT_EQ(similar(make_features(4, 2).view(), 1, similarity.view()),
              "bilateral_similarity: queries must be [n, 3], got [4, 2]");
    EXPECT_EQ(similar(rows.view(), 1, similarity.view()), "bilateral_similarity: 4 rows of indices for 5 queries");
    EXPECT_EQ(similar(queries.view(), -1, similarity.view()),
              "bilateral_similarity: beta must not be negative, got -1");
    EXPECT_EQ(similar(queries.view(), 1, out.view()), "bilateral_similarity: similarity must be [4, 2], got [4, 3]");
    EXPECT_EQ(similar(queries.view(), 1, View<float, 2>(nullptr, {4, 2}, kFakeCuda)),
              "bilateral_similarity: points on cpu, similarity on cuda:0");
    const auto combine = [&](View<const float, 3> a, View<const float, 3> b, float guard, View<float, 2> to) {
        return bad_argument_of([&] { ops::bilateral_combine(rows.view(), near, a, b, guard, to, out.view()); });
    };
    EXPECT_EQ(combine(View<const float, 3>(nullptr, {4, 3, 3}), th.view(), 1, out.view()),
              "bilateral_combine: th must be [4, 2, 3], got [4, 3, 3]");
    EXPECT_EQ(combine(th.view(), th.view(), 0, out.view()), "bilateral_combine: guard must be positive, got 0");
    EXPECT_EQ(combine(th.view(), th.view(), 1, similarity.view()), "bilateral_combine: out must be [4, 3], got [4, 2]");
    const Array<int32_t, 2> ranges({5, 2});
    const Array<int32_t, 1> positions({8});
    Array<float, 3> dL_dth({4, 2, 3});
    EXPECT_EQ(bad_argument_of([&] {
                  ops::bilateral_combine_backward(rows.view(), near, {ranges.view(), positions.view()}, th.view(),
                                                  th.view(), 1, out.view(), out.view(), out.view(), dL_dth.view(),
                                                  dL_dth.view(), View<float, 2>(nullptr, {4, 3}));
              }),
              "bilateral_combine_backward: dL_drows must be [5, 3], got [4, 3]");
}

TEST(BilateralWeightsCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const auto rows = make_features(5, 3), queries = make_features(4, 3);
    const auto indices = make_indices(Batch::single(4), 2, Batch::single(5));
    const auto th = rectified({4, 2, 3}, 2);
    const Clouds clouds(rows.view()), x(queries.view());
    const Neighbours near(indices.view());
    Array<float, 2> similarity({4, 2}), out({4, 3}), denominator({4, 3});
    const auto run = [&] {
        ops::bilateral_similarity(clouds, x, near, 1, similarity.view());
        ops::bilateral_combine(clouds, near, th.view(), th.view(), 1e-6f, out.view(), denominator.view());
    };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
