#include "stipple/ops/interpolate.h"

#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::Neighbours;

class Interpolate : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Interpolate);

/// Random weights, one in five of them zero.
Array<float, 3> make_weights(int64_t m, int64_t q, int64_t k) {
    auto weights = random_array<float, 3>({m, q, k}, 9);
    for (int64_t i = 0; i < weights.elements(); i += 5) weights.data()[i] = 0;
    return weights;
}

/// Everything the op computes, against loops that say the same plainly and in the order of the contract.
TEST_P(Interpolate, SumsAndGradients) {
    for (const Layout& layout : layouts()) {
        for (int64_t c : {1, 3, 4, 64, 67, 300}) {
            for (const auto& [q, k] : std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {5, 7}, {1, 0}, {0, 2}}) {
                const int64_t m = layout.batch.rows(), n = layout.rows.rows();
                const auto rows = random_array<float, 2>({n, c}, 1);
                const auto indices = make_indices(layout.batch, k, layout.rows);
                const auto weights = make_weights(m, q, k), gradient = random_array<float, 3>({m, q, c}, 4);
                std::vector<float> out(m * q * c);
                std::vector<double> dL_drows(n * c), dL_dweights(m * q * k), magnitude(m * q * k);
                for (int64_t e = 0; e < m * k; ++e) {
                    const int64_t i = e / k, j = e % k, row = named_row(indices, layout.batch, layout.rows, e);
                    for (int64_t s = i * q; s < (i + 1) * q && row >= 0; ++s) {
                        const float w = weights.data()[s * k + j];
                        for (int64_t l = 0; l < c; ++l) {
                            const float x = rows.data()[row * c + l], g = gradient.data()[s * c + l];
                            if (w != 0) out[s * c + l] += w * x;
                            dL_drows[row * c + l] += static_cast<double>(w) * g;
                            dL_dweights[s * k + j] += static_cast<double>(x) * g;
                            magnitude[s * k + j] += std::abs(static_cast<double>(x) * g);
                        }
                    }
                }
                const auto rows_there = upload(rows);
                const auto indices_there = upload(indices);
                const auto weights_there = upload(weights), gradient_there = upload(gradient);
                const Clouds clouds(rows_there.view(), layout.rows);
                const Neighbours neighbours(indices_there.view(), layout.batch);
                const Inverse inverse(neighbours, layout.rows);
                Guarded<float, 3> out_there({m, q, c}, device()), dL_dweights_there({m, q, k}, device());
                Guarded<float, 2> dL_drows_there({n, c}, device());
                ops::interpolate(clouds, neighbours, weights_there.view(), out_there.view());
                ops::interpolate_backward_rows(weights_there.view(), inverse.view(), gradient_there.view(),
                                               dL_drows_there.view());
                ops::interpolate_backward_weights(clouds, neighbours, gradient_there.view(), dL_dweights_there.view());
                const auto found = out_there.get(), found_weights = dL_dweights_there.get();
                const auto found_rows = dL_drows_there.get();
                for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(found.data()[i], out[i]) << i;
                for (size_t i = 0; i < dL_drows.size(); ++i)
                    ASSERT_EQ(found_rows.data()[i], static_cast<float>(dL_drows[i])) << i;
                for (size_t i = 0; i < dL_dweights.size(); ++i)
                    ASSERT_NEAR(found_weights.data()[i], dL_dweights[i], 1e-7 * magnitude[i]) << i;
            }
        }
    }
}

TEST_P(Interpolate, AZeroWeightLeavesANonFiniteRowOut) {
    Array<float, 2> rows({2, 4});
    for (int l = 0; l < 4; ++l) rows.data()[l] = NAN, rows.data()[4 + l] = static_cast<float>(l);
    Array<int32_t, 2> indices({1, 2});
    indices.data()[0] = 0, indices.data()[1] = 1;
    Array<float, 3> weights({1, 1, 2});
    weights.data()[0] = 0, weights.data()[1] = 2;
    const auto rows_there = upload(rows);
    const auto indices_there = upload(indices);
    const auto weights_there = upload(weights);
    Guarded<float, 3> out({1, 1, 4}, device());
    ops::interpolate(rows_there.view(), indices_there.view(), weights_there.view(), out.view());
    const auto found = out.get();
    for (int l = 0; l < 4; ++l) EXPECT_EQ(found.data()[l], 2.0f * static_cast<float>(l));
}

TEST(InterpolateCpu, SameOnAnyNumberOfThreads) {
    const Batch batch = Batch::dense(3, 300), rows = Batch::dense(3, 100);
    const int64_t q = 4, k = 8, c = 67;
    const auto features = make_features(rows.rows(), c);
    const auto indices = make_indices(batch, k, rows);
    const auto weights = make_weights(batch.rows(), q, k);
    expect_same_on_threads([&] {
        const Neighbours neighbours(indices.view(), batch);
        const Clouds clouds(features.view(), rows);
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{batch.rows(), q * c});
        results.emplace_back(std::array<int64_t, 2>{rows.rows(), c});
        results.emplace_back(std::array<int64_t, 2>{batch.rows(), q * k});
        const View<float, 3> out(results[0].data(), {batch.rows(), q, c});
        ops::interpolate(clouds, neighbours, weights.view(), out);
        const Inverse inverse(neighbours, rows);
        ops::interpolate_backward_rows(weights.view(), inverse.view(), out, results[1].view());
        ops::interpolate_backward_weights(clouds, neighbours, out,
                                          View<float, 3>(results[2].data(), {batch.rows(), q, k}));
        return results;
    });
}

TEST(InterpolateCpu, SaysWhatIsWrong) {
    const auto rows = make_features(5, 3);
    const Array<int32_t, 2> indices({4, 2}), ranges({5, 2});
    const Array<int32_t, 1> positions({8});
    const Array<float, 3> weights({4, 6, 2});
    Array<float, 3> out({4, 6, 3});
    const auto run = [&](View<const float, 3> given, View<float, 3> to) {
        return bad_argument_of([&] { ops::interpolate(rows.view(), indices.view(), given, to); });
    };
    EXPECT_EQ(run(View<const float, 3>(nullptr, {4, 6, 3}), out.view()),
              "interpolate: weights must be [4, 6, 2], got [4, 6, 3]");
    EXPECT_EQ(run(weights.view(), View<float, 3>(nullptr, {4, 5, 3})),
              "interpolate: out must be [4, 6, 3], got [4, 5, 3]");
    EXPECT_EQ(run(weights.view(), View<float, 3>(nullptr, {4, 6, 3}, kFakeCuda)),
              "interpolate: points on cpu, out on cuda:0");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::interpolate_backward_rows(weights.view(), {ranges.view(), positions.view()}, out.view(),
                                                 View<float, 2>(nullptr, {6, 3}));
              }),
              "interpolate_backward_rows: ranges must be [6, 2], got [5, 2]");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::interpolate_backward_rows(weights.view(), {ranges.view(), positions.view()}, out.view(),
                                                 View<float, 2>(nullptr, {5, 2}));
              }),
              "interpolate_backward_rows: dL_dout must be [4, 6, 2], got [4, 6, 3]");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::interpolate_backward_weights(rows.view(), indices.view(), out.view(),
                                                    View<float, 3>(nullptr, {4, 6, 3}));
              }),
              "interpolate_backward_weights: dL_dweights must be [4, 6, 2], got [4, 6, 3]");
    const View<const int32_t, 2> huge(nullptr, {int64_t{1} << 40, int64_t{1} << 20});
    EXPECT_THROW(ops::interpolate(rows.view(), huge, weights.view(), out.view()), Error);
}

TEST(InterpolateCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const auto features = make_features(3, 4);
    const auto indices = make_indices(Batch::single(4), 2, Batch::single(3));
    const auto weights = make_weights(4, 1, 2);
    const Neighbours neighbours(indices.view());
    const Clouds clouds(features.view());
    const Inverse inverse(neighbours, clouds.batch);
    Array<float, 3> out({4, 1, 4}), dL_dweights({4, 1, 2});
    Array<float, 2> dL_drows({3, 4});
    const auto run = [&] {
        ops::interpolate(clouds, neighbours, weights.view(), out.view());
        ops::interpolate_backward_rows(weights.view(), inverse.view(), out.view(), dL_drows.view());
        ops::interpolate_backward_weights(clouds, neighbours, out.view(), dL_dweights.view());
    };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
