#include "stipple/ops/inverse_density.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "stipple/ops/sampling/inverse_density_key.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;

class InverseDensity : public OnDevice {
protected:
    /// The samples of all clouds, with a sentinel behind them.
    std::vector<int32_t> sample(const Array<float, 2>& host, const Batch& batch, const Batch& samples, uint64_t seed,
                                ops::InverseDensityOptions options = {}) const {
        Array<int32_t, 1> all({samples.rows() + 1});
        all.data()[samples.rows()] = -77;
        Array<int32_t, 1> out = upload(all);
        const auto points = upload(host);
        ops::inverse_density_sample(Clouds(points.view(), batch), samples, seed, out.view().slice(0, samples.rows()),
                                    options);
        all = download(out);
        EXPECT_EQ(all.data()[samples.rows()], -77);
        return {all.data(), all.data() + samples.rows()};
    }
    std::vector<int32_t> sample(const Array<float, 2>& host, int64_t m, uint64_t seed,
                                ops::InverseDensityOptions options = {}) const {
        return sample(host, Batch::single(host.size(0)), Batch::single(m), seed, options);
    }
};
STIPPLE_ON_EVERY_DEVICE(InverseDensity);

bool is_finite(const float* p) {
    return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
}

/// Squared distance to the k-th other finite point, or to the last one; -1 for a non-finite point.
float radius_sq_of(View<const float, 2> points, int64_t i, int k) {
    const float* p = points.data() + 3 * i;
    if (!is_finite(p)) return -1;
    std::vector<float> others;
    for (int64_t j = 0; j < points.size(0); ++j)
        if (j != i && is_finite(points.data() + 3 * j)) others.push_back(distance_sq(p, points.data() + 3 * j));
    if (others.empty()) return 0;
    std::sort(others.begin(), others.end());
    return others[std::min<size_t>(static_cast<size_t>(k), others.size()) - 1];
}

std::vector<int32_t> oracle(View<const float, 2> points, int64_t cloud, int64_t m, uint64_t seed,
                            ops::InverseDensityOptions options) {
    std::vector<std::pair<uint64_t, int32_t>> keys;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float radius_sq = radius_sq_of(points, i, options.k);
        if (radius_sq >= 0)
            keys.emplace_back(ops::inverse_density_key(seed, cloud, i, radius_sq, options.dimension),
                              static_cast<int32_t>(i));
    }
    std::sort(keys.begin(), keys.end());
    std::vector<int32_t> samples;
    for (int64_t i = 0; i < m; ++i) samples.push_back(keys.at(i).second);
    std::sort(samples.begin(), samples.end());
    return samples;
}

TEST_P(InverseDensity, IsTheOraclesForEveryKind) {
    for (Kind kind : all_kinds()) {
        for (int64_t n : {2, 17, 200, 301}) {
            const auto points = make_cloud(kind, n);
            int64_t finite = 0;
            for (int64_t i = 0; i < n; ++i) finite += is_finite(points.data() + 3 * i);
            for (int dimension : {1, 2, 3}) {
                if (n == 301 && dimension != 2) continue;  // the oracle is slow
                const ops::InverseDensityOptions options = {static_cast<int>(std::min<int64_t>(16, n - 1)), dimension};
                for (int64_t m : {int64_t{0}, int64_t{1}, finite / 3, finite}) {
                    SCOPED_TRACE(to_string(kind) + " " + std::to_string(n) + " to " + std::to_string(m));
                    ASSERT_EQ(sample(points, m, 5, options), oracle(points.view(), 0, m, 5, options));
                }
            }
        }
    }
}

TEST_P(InverseDensity, OfBatches) {
    const auto points = make_cloud(Kind::nonfinite, 900);
    const ops::InverseDensityOptions options = {8, 2};
    for (const Batch& batch : {Batch::dense(3, 300), Batch::ragged({0, 0, 100, 700, 700, 900})}) {
        std::vector<int64_t> offsets = {0};
        for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
            offsets.push_back(offsets.back() + batch.size(cloud) / 5);
        const Batch samples = Batch::ragged(offsets);
        std::vector<int32_t> expected;
        for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
            const auto part = oracle(Clouds(points.view(), batch).cloud(cloud), cloud, samples.size(cloud), 3, options);
            expected.insert(expected.end(), part.begin(), part.end());
        }
        EXPECT_EQ(sample(points, batch, samples, 3, options), expected);
    }
    EXPECT_TRUE(sample(make_cloud(Kind::uniform, 0), Batch::dense(3, 0), Batch::dense(3, 0), 1).empty());
}

TEST_P(InverseDensity, BlocksOfRowsFitTogether) {
    // More points than neighbours are held for at a time; clouds cross the boundary.
    const auto points = make_cloud(Kind::uniform, 140000);
    const Batch two = Batch::ragged({0, 60000, 140000});
    const auto both = sample(points, two, Batch::dense(2, 2000), 9, {4, 3});
    Array<float, 2> first({60000, 3});
    std::memcpy(first.data(), points.data(), first.elements() * 4);
    const auto one = sample(first, 2000, 9, {4, 3});
    EXPECT_TRUE(std::equal(one.begin(), one.end(), both.begin()));
}

TEST_P(InverseDensity, DrawsInProportionToTheWeights) {
    // On a line, k = 1: distances to the nearest other point 1, 1, 2, 4 (points 0, 1, 3, 7).
    Array<float, 2> points({4, 3});
    const float at[] = {0, 1, 3, 7};
    for (int64_t i = 0; i < 4; ++i) points.view()(i, 0) = at[i], points.view()(i, 1) = points.view()(i, 2) = 0;
    const double weight[] = {1, 1, 4, 16};
    constexpr int kDraws = 4000;
    int found[4] = {};
    for (int seed = 0; seed < kDraws; ++seed) ++found[sample(points, 1, seed, {1, 2})[0]];
    for (int i = 0; i < 4; ++i) {
        const double p = weight[i] / 22;
        EXPECT_NEAR(found[i], kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p))) << i;
    }
}

TEST_P(InverseDensity, EvensOutDensity) {
    // Two squares of the same size, one with nine times the points.
    Array<float, 2> points({10000, 3});
    const Rng rng(4);
    for (int64_t i = 0; i < 10000; ++i) {
        points.view()(i, 0) = rng.uniform(2 * i) + (i < 9000 ? 0.f : 5.f);
        points.view()(i, 1) = rng.uniform(2 * i + 1);
        points.view()(i, 2) = 0;
    }
    const auto samples = sample(points, 500, 1);
    const auto dense = std::count_if(samples.begin(), samples.end(), [](int32_t i) { return i < 9000; });
    // Drawing 250 of the 1000 uses them up somewhat; edges weigh more. 450 would be chance without weights.
    EXPECT_NEAR(static_cast<double>(dense), 250, 40);
}

TEST_P(InverseDensity, SmallerCountsAreContained) {
    const auto points = make_cloud(Kind::clustered, 500);
    const auto many = sample(points, 200, 7), few = sample(points, 50, 7);
    EXPECT_TRUE(std::includes(many.begin(), many.end(), few.begin(), few.end()));
    EXPECT_NE(sample(points, 50, 8), few);
}

TEST_P(InverseDensity, DuplicatesComeLast) {
    // 20 points in one place, 30 apart: with k = 16 the 20 have no weight.
    auto points = make_cloud(Kind::uniform, 50);
    for (int64_t i = 0; i < 20; ++i) std::fill_n(points.data() + 3 * (2 * i), 3, 0.5f);
    const auto samples = sample(points, 33, 1);
    std::vector<int32_t> expected = {0, 2, 4};  // the lowest of the duplicates
    for (int32_t i = 0; i < 50; ++i)
        if (i % 2 == 1 || i >= 40) expected.push_back(i);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(samples, expected);
}

TEST(InverseDensityCpu, LogarithmIsTheLibrarys) {
    const Rng rng(3);
    const auto expect_log = [](double x) {
        const double expected = std::log(x);
        EXPECT_NEAR(ops::portable_log(x), expected, 4e-16 * std::abs(expected)) << x;
    };
    for (int i = 0; i < 100000; ++i) expect_log((rng.bits(i) + 0.5) * 0x1p-32);
    for (int e = 1; e < 1000; ++e) expect_log(std::ldexp(0.5 + 1e-3 * e / 2, -e));
    for (int i = 1; i < 60; ++i) expect_log(1 - std::ldexp(1.0, -i - 1));  // near 1, where a logarithm loses digits
    expect_log(0x1p-53);
    EXPECT_EQ(ops::portable_log(1), 0);
}

TEST(InverseDensityCpu, SameOnOneThreadAndThree) {
    const auto points = make_cloud(Kind::clustered, 20000);
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> result;
        result.emplace_back(Array<float, 2>::Shape{2, 700});
        ops::inverse_density_sample(Clouds(points.view(), Batch::dense(2, 10000)), Batch::dense(2, 700), 1,
                                    View<int32_t, 1>(reinterpret_cast<int32_t*>(result[0].data()), {1400}));
        return result;
    });
}

TEST(InverseDensityCpu, RefusesWhatMakesNoSense) {
    const auto points = make_cloud(Kind::nonfinite, 100);
    Array<int32_t, 1> out({101});
    const auto sample = [&](const Clouds& clouds, const Batch& samples, ops::InverseDensityOptions options = {}) {
        return bad_argument_of([&] {
            ops::inverse_density_sample(clouds, samples, 0, out.view().slice(0, std::min<int64_t>(101, samples.rows())),
                                        options);
        });
    };
    EXPECT_EQ(sample(points.view(), Batch::single(101)),
              "inverse_density_sample: asked for 101 of the 100 points of cloud 0");
    EXPECT_EQ(sample(points.view(), Batch::single(99)),
              "inverse_density_sample: asked for 99 samples, cloud 0 has fewer finite points");
    EXPECT_EQ(sample(points.view().slice(0, 16), Batch::single(5)),
              "inverse_density_sample: k is 16, but cloud 0 has 16 points");
    for (int k : {0, -1, 128}) sample(points.view(), Batch::single(5), {k, 2});
    for (int dimension : {0, 4}) sample(points.view(), Batch::single(5), {16, dimension});
    sample(points.view(), Batch::dense(2, 5));
    sample(points.view(), Batch::single(102));  // a view of 101
    sample(make_features(100, 4).view(), Batch::single(5));
    const Device gpu{DeviceType::cuda, 0};
    sample(View<const float, 2>(nullptr, {100, 3}, gpu), Batch::single(5));
    bad_argument_of(
        [&] { ops::inverse_density_sample(points.view(), Batch::single(5), 0, View<int32_t, 1>(nullptr, {5}, gpu)); });
    sample(View<const float, 2>(nullptr, {int64_t{1} << 31, 3}, {0, 1}), Batch::single(5));
}

TEST(InverseDensityCpu, SurvivesFailingAllocations) {
    const auto points = make_cloud(Kind::uniform, 60);
    EXPECT_GE(for_each_allocation_failure([&] {
                  Array<int32_t, 1> out({20});
                  ops::inverse_density_sample(points.view(), Batch::single(20), 1, out.view());
              }),
              can_fail_allocations() ? 5 : 0);
}

TEST(InverseDensityCpu, KeepsNoMemory) {
    const auto points = make_cloud(Kind::uniform, 20);
    Array<int32_t, 1> out({5});
    const auto once = [&] { ops::inverse_density_sample(points.view(), Batch::single(5), 1, out.view(), {4, 2}); };
    once();
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) once();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
