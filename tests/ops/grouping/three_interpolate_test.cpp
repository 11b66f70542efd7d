#include "stipple/ops/three_interpolate.h"

#include <numeric>

#include "stipple/ops/interpolate.h"
#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::InverseDistance;

class ThreeInterpolate : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(ThreeInterpolate);

const std::vector<InverseDistance> kOptions = {{},
                                               {InverseDistance::Power::plain, 1e-8f},
                                               {InverseDistance::Power::squared, 0.1f},
                                               {InverseDistance::Power::plain, 0.1f}};

std::vector<double> naive_weights(const std::vector<double>& distances_sq, const InverseDistance& options) {
    std::vector<double> weights;
    for (double d : distances_sq) {
        const double power = options.power == InverseDistance::Power::squared ? d : std::sqrt(d);
        weights.push_back(std::isfinite(d) ? 1 / (power + options.epsilon) : 0);
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& w : weights) w = sum > 0 ? w / sum : 0;
    return weights;
}

/// Rows of distances: ordinary, zero, equal, missing, all missing, tiny, huge.
Array<float, 2> make_distances(int64_t m, int64_t k) {
    auto distances = random_array<float, 2>({m, k}, 3, 0.01f, 2);
    for (int64_t i = 0; i < m; ++i) {
        float* row = distances.data() + i * k;
        if (i % 7 == 1) row[0] = 0;
        if (i % 7 == 2) std::fill_n(row, k, 0.5f);
        if (i % 7 == 3) row[k - 1] = INFINITY;
        if (i % 7 == 4) std::fill_n(row, k, INFINITY);
        if (i % 7 == 5) std::for_each(row, row + k, [](float& d) { d *= 1e-30f; });
        if (i % 7 == 6) std::for_each(row, row + k, [](float& d) { d *= 1e30f; });
    }
    return distances;
}

TEST_P(ThreeInterpolate, WeightsAreInverseDistancesAndSumToOne) {
    for (const InverseDistance& options : kOptions) {
        for (const auto& [m, k] :
             std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {1, 3}, {300, 3}, {50, 1}, {20, 9}}) {
            const auto distances = make_distances(m, k);
            const auto there = upload(distances);
            Guarded<float, 2> weights({m, k}, device());
            ops::three_weights(there.view(), options, weights.view());
            const auto found = weights.get();
            for (int64_t i = 0; i < m; ++i) {
                const float* row = distances.data() + i * k;
                const auto wanted = naive_weights({row, row + k}, options);
                for (int64_t j = 0; j < k; ++j)
                    ASSERT_NEAR(found.data()[i * k + j], wanted[j], 1.2e-7 * wanted[j]) << i << " " << j;
            }
        }
    }
}

TEST_P(ThreeInterpolate, AKnownPointKeepsItsFeature) {
    Array<float, 2> distances({1, 3}), rows({3, 2});
    Array<int32_t, 2> indices({1, 3});
    for (int32_t j = 0; j < 3; ++j) {
        distances.data()[j] = static_cast<float>(j);
        indices.data()[j] = j;
        rows.data()[2 * j] = static_cast<float>(j + 1), rows.data()[2 * j + 1] = static_cast<float>(-j);
    }
    const auto distances_there = upload(distances), rows_there = upload(rows);
    const auto indices_there = upload(indices);
    Array<float, 2> weights({1, 3}, device());
    ops::three_weights(distances_there.view(), {}, weights.view());
    Guarded<float, 3> out({1, 1, 2}, device());
    ops::interpolate(rows_there.view(), indices_there.view(), View<const float, 3>(weights.data(), {1, 1, 3}, device()),
                     out.view());
    const auto found = out.get();
    EXPECT_NEAR(found.data()[0], 1, 1e-6);
    EXPECT_NEAR(found.data()[1], 0, 1e-6);
}

TEST_P(ThreeInterpolate, GradientMatchesFiniteDifferences) {
    for (const InverseDistance& options : kOptions) {
        const int64_t m = 6, k = 4;
        auto distances = random_array<float, 2>({m, k}, 5, 0.2f, 2);
        distances.data()[3] = INFINITY;
        const auto gradient = random_array<float, 2>({m, k}, 6);
        const auto distances_there = upload(distances), gradient_there = upload(gradient);
        Guarded<float, 2> out({m, k}, device());
        ops::three_weights_backward(distances_there.view(), options, gradient_there.view(), out.view());
        const auto found = out.get();
        for (int64_t i = 0; i < m; ++i) {
            const float* row = distances.data() + i * k;
            const auto loss = [&](const std::vector<double>& x) {
                const auto weights = naive_weights(x, options);
                double sum = 0;
                for (int64_t j = 0; j < k; ++j) sum += weights[j] * gradient.data()[i * k + j];
                return sum;
            };
            for (int64_t j = 0; j < k; ++j) {
                const double wanted = std::isfinite(row[j]) ? central_difference(loss, {row, row + k}, j) : 0;
                EXPECT_NEAR(found.data()[i * k + j], wanted, 1e-6 * (1 + std::abs(wanted))) << i << " " << j;
            }
        }
    }
}

TEST_P(ThreeInterpolate, GradientAtDistanceZeroIsFinite) {
    const auto distances = make_distances(7 * 4, 3), gradient = random_array<float, 2>({7 * 4, 3}, 2);
    const auto distances_there = upload(distances), gradient_there = upload(gradient);
    Guarded<float, 2> out({7 * 4, 3}, device());
    ops::three_weights_backward(distances_there.view(), {InverseDistance::Power::plain, 1e-8f}, gradient_there.view(),
                                out.view());
    const auto found = out.get();
    EXPECT_EQ(found.data()[3], 0.0f);  // row 1 begins with a distance of 0
    for (float g : found.span()) EXPECT_TRUE(std::isfinite(g));
}

TEST(ThreeInterpolateCpu, SaysWhatIsWrong) {
    Array<float, 2> distances({4, 3}), out({4, 3});
    EXPECT_EQ(bad_argument_of([&] { ops::three_weights(distances.view(), {}, out.view().slice(0, 3)); }),
              "three_weights: weights must be [4, 3], got [3, 3]");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::three_weights(distances.view(), {InverseDistance::Power::squared, 0}, out.view());
              }),
              "three_weights: epsilon must be positive, got 0");
    EXPECT_EQ(bad_argument_of([&] {
                  ops::three_weights(distances.view(), {}, View<float, 2>(nullptr, {4, 3}, kFakeCuda));
              }),
              "three_weights: points on cpu, weights on cuda:0");
    EXPECT_EQ(
        bad_argument_of([&] { ops::three_weights_backward(distances.view(), {}, out.view().slice(1, 4), out.view()); }),
        "three_weights_backward: dL_dweights must be [4, 3], got [3, 3]");
}

TEST(ThreeInterpolateCpu, SameOnAnyNumberOfThreadsAndKeepsNoMemory) {
    const auto distances = make_distances(9000, 3);
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> results;
        for (int i = 0; i < 2; ++i) results.emplace_back(std::array<int64_t, 2>{9000, 3});
        ops::three_weights(distances.view(), {}, results[0].view());
        ops::three_weights_backward(distances.view(), {}, results[0].view(), results[1].view());
        return results;
    });
    const auto few = make_distances(5, 3);
    Array<float, 2> weights({5, 3});
    const auto run = [&] { ops::three_weights(few.view(), {}, weights.view()); };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
