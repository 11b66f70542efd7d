#include "stipple/ops/kernel_interpolate.h"

#include "stipple/ops/group.h"
#include "stipple/ops/interpolate.h"
#include "stipple/ops/scatter_add.h"
#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::KernelWeights;
using ops::Neighbours;

class KernelInterpolate : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(KernelInterpolate);

std::vector<KernelWeights> all_options(float width) {
    std::vector<KernelWeights> all;
    for (auto shape : {KernelWeights::Shape::trilinear, KernelWeights::Shape::gaussian}) {
        for (auto normalise :
             {KernelWeights::Normalise::none, KernelWeights::Normalise::sum, KernelWeights::Normalise::count})
            all.push_back({shape, width, normalise});
    }
    return all;
}

/// The formula in double; rows of three numbers.
std::vector<double> naive_weights(const std::vector<double>& points, const std::vector<double>& queries,
                                  const std::vector<double>& kernel, const Array<int32_t, 2>& indices,
                                  const Layout& layout, const KernelWeights& options) {
    const int64_t m = indices.size(0), k = indices.size(1), q = static_cast<int64_t>(kernel.size()) / 3;
    std::vector<double> weights(m * q * k);
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t r = 0; r < q; ++r) {
            double sum = 0, count = 0;
            for (int64_t j = 0; j < k; ++j) {
                const int64_t row = named_row(indices, layout.batch, layout.rows, i * k + j);
                if (row < 0) continue;
                double product = 1, square = 0;
                for (int axis = 0; axis < 3; ++axis) {
                    const double d = points[3 * row + axis] - queries[3 * i + axis] - kernel[3 * r + axis];
                    product *= std::max(0.0, 1 - std::abs(d) / options.width);
                    square += d * d;
                }
                const double t = options.shape == KernelWeights::Shape::trilinear
                                     ? product
                                     : std::exp(-square / (2.0 * options.width * options.width));
                weights[(i * q + r) * k + j] = t;
                sum += t;
                count += t != 0;
            }
            const double n = options.normalise == KernelWeights::Normalise::sum     ? sum
                             : options.normalise == KernelWeights::Normalise::count ? count
                                                                                    : 1;
            for (int64_t j = 0; j < k; ++j) weights[(i * q + r) * k + j] *= n > 0 ? 1 / n : 0;
        }
    }
    return weights;
}

/// Coordinates that are multiples of 2^-10: differences are exact in float, so that the tolerance is that of T alone.
Array<float, 2> coarse(int64_t n, uint64_t seed) {
    auto points = make_features(n, 3, seed);
    for (float& x : points.span()) x = std::round(x * 1024) / 1024;
    return points;
}

TEST_P(KernelInterpolate, Weights) {
    for (const Layout& layout : layouts()) {
        for (const KernelWeights& options : all_options(0.25f)) {
            for (const auto& [side, k] : std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {3, 5}, {2, 40}, {3, 0}}) {
                const int64_t m = layout.batch.rows();
                const auto points = coarse(layout.rows.rows(), 1), queries = coarse(m, 2);
                const auto kernel = ops::kernel_lattice(side, 0.25f);
                const auto indices = make_indices(layout.batch, k, layout.rows);
                const auto points_there = upload(points), queries_there = upload(queries),
                           kernel_there = upload(kernel);
                const auto indices_there = upload(indices);
                Guarded<float, 3> weights({m, kernel.size(0), k}, device());
                ops::kernel_weights(
                    Clouds(points_there.view(), layout.rows), Clouds(queries_there.view(), layout.batch),
                    Neighbours(indices_there.view(), layout.batch), kernel_there.view(), options, weights.view());
                const auto found = weights.get();
                const auto wanted =
                    naive_weights(doubles(points), doubles(queries), doubles(kernel), indices, layout, options);
                for (size_t i = 0; i < wanted.size(); ++i) {
                    // A gaussian's exponent is up to 50 here, and its rounding counts that often.
                    const double tolerance = options.shape == KernelWeights::Shape::gaussian ? 6e-6 : 5e-7;
                    ASSERT_NEAR(found.data()[i], wanted[i], tolerance * wanted[i] + 1e-30) << i;
                }
            }
        }
    }
}

TEST_P(KernelInterpolate, NormalisedByTheSumIsAPartitionAndInvariantToRepeats) {
    // The mean of a constant is the constant, and every point twice changes nothing: InterpConv's claim on density.
    const int64_t m = 20, n = 64, c = 2;
    const auto points = coarse(n, 1), queries = coarse(m, 2);
    const auto kernel = ops::kernel_lattice(3, 0.25f);
    Array<float, 2> features({n, c});
    for (int64_t i = 0; i < n; ++i) features.data()[2 * i] = 7, features.data()[2 * i + 1] = static_cast<float>(i);
    Array<int32_t, 2> once({m, n}), twice({m, 2 * n});
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j)
            once.view()(i, j) = twice.view()(i, 2 * j) = twice.view()(i, 2 * j + 1) = static_cast<int32_t>(j);
    }
    const auto run = [&](const Array<int32_t, 2>& indices) {
        const auto points_there = upload(points), queries_there = upload(queries), kernel_there = upload(kernel);
        const auto features_there = upload(features);
        const auto indices_there = upload(indices);
        Array<float, 3> weights({m, 27, indices.size(1)}, device()), out({m, 27, c}, device());
        ops::kernel_weights(points_there.view(), queries_there.view(), indices_there.view(), kernel_there.view(),
                            {.width = 0.25f}, weights.view());
        ops::interpolate(features_there.view(), indices_there.view(), weights.view(), out.view());
        return download(out);
    };
    const auto a = run(once), b = run(twice);
    int constant = 0;
    for (int64_t s = 0; s < m * 27; ++s) {
        const float value = a.data()[2 * s];
        if (value != 0) {
            ASSERT_NEAR(value, 7, 1e-5);
            ++constant;
        }
        ASSERT_NEAR(a.data()[2 * s + 1], b.data()[2 * s + 1], 1e-4);
    }
    EXPECT_GT(constant, 300);  // most kernel points have a neighbour
}

TEST_P(KernelInterpolate, NonFinitePointsDoNotWeighTrilinearly) {
    const auto points = make_cloud(Kind::nonfinite, 14);
    Array<float, 2> queries({1, 3});
    std::fill_n(queries.data(), 3, 0.5f);
    Array<int32_t, 2> indices({1, 14});
    for (int32_t j = 0; j < 14; ++j) indices.data()[j] = j;
    const auto kernel = ops::kernel_lattice(2, 1);
    const auto points_there = upload(points), queries_there = upload(queries), kernel_there = upload(kernel);
    const auto indices_there = upload(indices);
    Guarded<float, 3> weights({1, 8, 14}, device());
    ops::kernel_weights(points_there.view(), queries_there.view(), indices_there.view(), kernel_there.view(), {},
                        weights.view());
    const auto found = weights.get();
    for (int r = 0; r < 8; ++r) {
        double sum = 0;
        for (int j = 0; j < 14; ++j) sum += found.view()(0, r, j);
        EXPECT_NEAR(sum, 1, 1e-6);
        EXPECT_EQ(found.view()(0, r, 3), 0);
        EXPECT_EQ(found.view()(0, r, 10), 0);
    }
}

TEST_P(KernelInterpolate, GradientsMatchFiniteDifferences) {
    const Layout layout = {Batch::ragged({0, 3, 3, 8}), Batch::ragged({0, 6, 9, 20})};
    const int64_t m = 8, n = 20, k = 5, q = 8;
    const auto points = make_features(n, 3, 1), queries = make_features(m, 3, 2);
    const auto kernel = ops::kernel_lattice(2, 0.6f);
    const auto indices = make_indices(layout.batch, k, layout.rows, 3);
    const auto gradient = random_array<float, 3>({m, q, k}, 4);
    for (const KernelWeights& options : all_options(0.7f)) {
        const auto points_there = upload(points), queries_there = upload(queries), kernel_there = upload(kernel);
        const auto indices_there = upload(indices);
        const auto gradient_there = upload(gradient);
        const Neighbours neighbours(indices_there.view(), layout.batch);
        Guarded<float, 3> dL_doffsets({m, k, 3}, device());
        Guarded<float, 2> dL_dkernel({q, 3}, device()), dL_dpoints({n, 3}, device()), dL_dqueries({m, 3}, device());
        ops::kernel_weights_backward(Clouds(points_there.view(), layout.rows),
                                     Clouds(queries_there.view(), layout.batch), neighbours, kernel_there.view(),
                                     options, gradient_there.view(), dL_doffsets.view(), dL_dkernel.view());
        const Inverse inverse(neighbours, layout.rows);
        const View<float, 3> offsets = dL_doffsets.view();
        ops::scatter_add(View<const float, 2>(offsets.data(), {m * k, 3}, device()), inverse.view(), dL_dpoints.view());
        ops::group_backward_centres(neighbours, layout.rows, offsets, dL_dqueries.view());
        dL_doffsets.get();  // checks the sentinels

        const auto loss = [&](const std::vector<double>& p, const std::vector<double>& x,
                              const std::vector<double>& at) {
            const auto weights = naive_weights(p, x, at, indices, layout, options);
            double sum = 0;
            for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * gradient.data()[i];
            return sum;
        };
        const auto p = doubles(points), x = doubles(queries), at = doubles(kernel);
        const auto compare = [&](const Array<float, 2>& found, const std::vector<double>& values, const auto& f) {
            for (size_t i = 0; i < values.size(); ++i) {
                const double wanted = central_difference(f, values, i, 1e-6);
                EXPECT_NEAR(found.data()[i], wanted, 1e-5 * (1 + std::abs(wanted))) << i;
            }
        };
        compare(dL_dpoints.get(), p, [&](const auto& changed) { return loss(changed, x, at); });
        compare(dL_dqueries.get(), x, [&](const auto& changed) { return loss(p, changed, at); });
        compare(dL_dkernel.get(), at, [&](const auto& changed) { return loss(p, x, changed); });
    }
}

TEST_P(KernelInterpolate, GradientOfManyQueriesAndOfNone) {
    // More queries than one partial sum of the kernel's gradient takes: against the sum of single calls.
    const int64_t m = 333, n = 50, k = 4, q = 27;
    const auto points = coarse(n, 1), queries = coarse(m, 2), kernel = ops::kernel_lattice(3, 0.5f);
    const auto indices = make_indices(Batch::single(m), k, Batch::single(n));
    const auto gradient = random_array<float, 3>({m, q, k}, 4);
    const auto points_there = upload(points), queries_there = upload(queries), kernel_there = upload(kernel);
    const auto indices_there = upload(indices);
    const auto gradient_there = upload(gradient);
    const KernelWeights options = {.width = 0.5f};
    const auto run = [&](int64_t begin, int64_t end) {
        Array<float, 3> dL_doffsets({end - begin, k, 3}, device());
        Guarded<float, 2> dL_dkernel({q, 3}, device());
        ops::kernel_weights_backward(points_there.view(), queries_there.view().slice(begin, end),
                                     indices_there.view().slice(begin, end), kernel_there.view(), options,
                                     gradient_there.view().slice(begin, end), dL_doffsets.view(), dL_dkernel.view());
        return dL_dkernel.get();
    };
    std::vector<double> sums(3 * q), sizes(3 * q);
    for (int64_t i = 0; i < m; ++i) {
        const auto one = run(i, i + 1);
        for (int64_t a = 0; a < 3 * q; ++a) sums[a] += one.data()[a], sizes[a] += std::abs(one.data()[a]);
    }
    const auto all = run(0, m), none = run(7, 7);
    for (int64_t a = 0; a < 3 * q; ++a) {
        EXPECT_NEAR(all.data()[a], sums[a], 1e-7 * sizes[a]) << a;
        EXPECT_EQ(none.data()[a], 0.0f);
    }
}

TEST(KernelInterpolateCpu, Lattice) {
    const auto kernel = ops::kernel_lattice(3, 0.5f);
    ASSERT_EQ(kernel.shape(), (std::array<int64_t, 2>{27, 3}));
    EXPECT_EQ(kernel.view()(0, 0), -0.5f);
    EXPECT_EQ(kernel.view()(1, 0), 0.0f);
    EXPECT_EQ(kernel.view()(1, 1), -0.5f);
    EXPECT_EQ(kernel.view()(13, 2), 0.0f);
    EXPECT_EQ(kernel.view()(26, 1), 0.5f);
    EXPECT_EQ(ops::kernel_lattice(2, 1).view()(0, 0), -0.5f);
    EXPECT_NE(bad_argument_of([] { ops::kernel_lattice(11, 1); }).find("a side of 11"), std::string::npos);
    EXPECT_NE(bad_argument_of([] { ops::kernel_lattice(2, 0); }).find("spacing"), std::string::npos);
}

TEST(KernelInterpolateCpu, SameOnAnyNumberOfThreads) {
    const int64_t m = 500, n = 100, k = 8, q = 27;
    const auto points = make_features(n, 3, 1), queries = make_features(m, 3, 2), kernel = ops::kernel_lattice(3, 0.3f);
    const auto indices = make_indices(Batch::single(m), k, Batch::single(n));
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{m, q * k});
        results.emplace_back(std::array<int64_t, 2>{m, 3 * k});
        results.emplace_back(std::array<int64_t, 2>{q, 3});
        const View<float, 3> weights(results[0].data(), {m, q, k});
        ops::kernel_weights(points.view(), queries.view(), indices.view(), kernel.view(), {.width = 0.3f}, weights);
        ops::kernel_weights_backward(points.view(), queries.view(), indices.view(), kernel.view(), {.width = 0.3f},
                                     weights, View<float, 3>(results[1].data(), {m, k, 3}), results[2].view());
        return results;
    });
}

TEST(KernelInterpolateCpu, SaysWhatIsWrong) {
    const auto points = make_features(5, 3), queries = make_features(4, 3), kernel = ops::kernel_lattice(2, 1);
    const Array<int32_t, 2> indices({4, 2});
    Array<float, 3> weights({4, 8, 2}), offsets({4, 2, 3});
    const auto run = [&](const Clouds& p, const Clouds& x, const Neighbours& near, View<const float, 2> at, float width,
                         View<float, 3> to) {
        return bad_argument_of([&] { ops::kernel_weights(p, x, near, at, {.width = width}, to); });
    };
    const Neighbours near(indices.view());
    EXPECT_EQ(run(make_features(5, 4).view(), queries.view(), near, kernel.view(), 1, weights.view()),
              "kernel_weights: points must be [n, 3], got [5, 4]");
    EXPECT_EQ(run(points.view(), points.view(), near, kernel.view(), 1, weights.view()),
              "kernel_weights: 4 rows of indices for 5 queries");
    EXPECT_EQ(run(points.view(), queries.view(), near, View<const float, 2>(nullptr, {0, 3}), 1, weights.view()),
              "kernel_weights: 0 kernel points; 1 to 1024 are possible");
    EXPECT_EQ(run(points.view(), queries.view(), near, View<const float, 2>(nullptr, {1025, 3}), 1, weights.view()),
              "kernel_weights: 1025 kernel points; 1 to 1024 are possible");
    EXPECT_EQ(run(points.view(), queries.view(), near, View<const float, 2>(nullptr, {8, 2}), 1, weights.view()),
              "kernel_weights: kernel must be [8, 3], got [8, 2]");
    for (float width : {0.0f, -1.0f, NAN, INFINITY})
        EXPECT_NE(run(points.view(), queries.view(), near, kernel.view(), width, weights.view()).find("width"),
                  std::string::npos);
    EXPECT_EQ(run(points.view(), queries.view(), near, kernel.view(), 1, offsets.view()),
              "kernel_weights: weights must be [4, 8, 2], got [4, 2, 3]");
    EXPECT_EQ(run(points.view(), queries.view(), near, kernel.view(), 1, View<float, 3>(nullptr, {4, 8, 2}, kFakeCuda)),
              "kernel_weights: points on cpu, weights on cuda:0");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::kernel_weights_backward(points.view(), queries.view(), near, kernel.view(), {}, weights.view(),
                                               offsets.view(), View<float, 2>(nullptr, {7, 3}));
              }),
              "kernel_weights_backward: dL_dkernel must be [8, 3], got [7, 3]");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::kernel_weights_backward(points.view(), queries.view(), near, kernel.view(), {}, offsets.view(),
                                               offsets.view(), {});
              }),
              "kernel_weights_backward: dL_dweights must be [4, 8, 2], got [4, 2, 3]");
}

TEST(KernelInterpolateCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const auto points = make_features(5, 3), queries = make_features(4, 3), kernel = ops::kernel_lattice(2, 1);
    const auto indices = make_indices(Batch::single(4), 2, Batch::single(5));
    const Clouds p(points.view()), x(queries.view());
    const Neighbours near(indices.view());
    Array<float, 3> weights({4, 8, 2}), offsets({4, 2, 3});
    Array<float, 2> dL_dkernel({8, 3});
    const auto run = [&] {
        ops::kernel_weights(p, x, near, kernel.view(), {}, weights.view());
        ops::kernel_weights_backward(p, x, near, kernel.view(), {}, weights.view(), offsets.view(), dL_dkernel.view());
    };
    EXPECT_GT(for_each_allocation_failure(run), can_fail_allocations() ? 0 : -1);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
