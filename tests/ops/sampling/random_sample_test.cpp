#include "stipple/ops/random_sample.h"

#include <algorithm>
#include <set>
#include <utility>

#include "stipple/core/parallel.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::RandomSampleOptions;
using ops::SampleOrder;

const RandomSampleOptions kByIndex, kRandomOrder{SampleOrder::random, false}, kReplacing{SampleOrder::by_index, true};

class RandomSample : public OnDevice {
protected:
    std::vector<int32_t> sample(const Batch& points, const Batch& samples, uint64_t seed,
                                const RandomSampleOptions& options = {}) const {
        constexpr int64_t kRoom = 8;
        Array<int32_t, 1> host({samples.rows() + 2 * kRoom});
        std::fill(host.span().begin(), host.span().end(), -77);
        Array<int32_t, 1> indices = upload(host);
        random_sample(points, samples, seed, indices.view().slice(kRoom, kRoom + samples.rows()), options);
        host = download(indices);
        for (int64_t i = 0; i < kRoom; ++i) {
            EXPECT_EQ(host.data()[i], -77);
            EXPECT_EQ(host.data()[kRoom + samples.rows() + i], -77);
        }
        return {host.data() + kRoom, host.data() + kRoom + samples.rows()};
    }
    std::vector<int32_t> sample(int64_t n, int64_t m, uint64_t seed, const RandomSampleOptions& options = {}) const {
        return sample(Batch::single(n), Batch::single(m), seed, options);
    }
};
STIPPLE_ON_EVERY_DEVICE(RandomSample);

/// All points sorted by their bits, the first m.
std::vector<int32_t> naive(int64_t n, int64_t m, uint64_t seed, int64_t cloud, SampleOrder order) {
    std::vector<std::pair<uint64_t, int32_t>> draws(n);
    for (int64_t i = 0; i < n; ++i) draws[i] = {ops::random_sample_bits(seed, cloud, i), static_cast<int32_t>(i)};
    std::sort(draws.begin(), draws.end());
    std::vector<int32_t> all(m);
    for (int64_t i = 0; i < m; ++i) all[i] = draws[i].second;
    if (order == SampleOrder::by_index) std::sort(all.begin(), all.end());
    return all;
}

TEST_P(RandomSample, EqualsTheSort) {
    for (const int64_t n : {0, 1, 2, 3, 100, 1001, 70'000}) {
        for (const int64_t m : {int64_t{0}, n / 1000, n / 10, n / 2, n}) {
            EXPECT_EQ(sample(n, m, 7), naive(n, m, 7, 0, SampleOrder::by_index)) << m << " of " << n;
            EXPECT_EQ(sample(n, m, 7, kRandomOrder), naive(n, m, 7, 0, SampleOrder::random)) << m << " of " << n;
        }
    }
}

TEST_P(RandomSample, EveryIndexAtMostOnce) {
    for (const int64_t n : {10, 1000, 30'000}) {
        const std::vector<int32_t> some = sample(n, n / 2, 3);
        EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
        EXPECT_EQ(std::set<int32_t>(some.begin(), some.end()).size(), some.size());
        EXPECT_GE(some.front(), 0);
        EXPECT_LT(some.back(), n);
    }
}

// 4000 samples of 5 of 20: each point is expected 1000 times; the statistic is close to chi-square of 19 degrees (times
// 15/19, as a sample has no repetitions), above 43.8 once in a thousand seeds.
TEST_P(RandomSample, IsUniform) {
    const int64_t clouds = 4000;
    for (const RandomSampleOptions& options : {kByIndex, kRandomOrder, kReplacing}) {
        const std::vector<int32_t> drawn = sample(Batch::dense(clouds, 20), Batch::dense(clouds, 5), 1, options);
        std::vector<double> counts(20);
        for (const int32_t index : drawn) ++counts.at(index);
        double statistic = 0;
        for (const double count : counts) statistic += (count - 1000) * (count - 1000) / 1000;
        EXPECT_LT(statistic, 43.8);
        EXPECT_GT(statistic, 3.0);  // nor suspiciously even
    }
    // In random order, so is the first alone.
    const std::vector<int32_t> drawn = sample(Batch::dense(clouds, 20), Batch::dense(clouds, 5), 2, kRandomOrder);
    std::vector<double> counts(20);
    for (int64_t i = 0; i < clouds; ++i) ++counts.at(drawn[5 * i]);
    double statistic = 0;
    for (const double count : counts) statistic += (count - 200) * (count - 200) / 200;
    EXPECT_LT(statistic, 43.8);
}

TEST_P(RandomSample, SmallerSamplesAreInside) {
    const std::vector<int32_t> all = sample(5000, 900, 4, kRandomOrder);
    for (const int64_t m : {1, 10, 500}) {
        const std::vector<int32_t> some = sample(5000, m, 4, kRandomOrder);
        EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << m;
    }
}

TEST_P(RandomSample, SeedsAndCloudsDiffer) {
    EXPECT_NE(sample(1000, 100, 1), sample(1000, 100, 2));
    EXPECT_NE(sample(1000, 100, 1), sample(1000, 100, uint64_t{1} << 40 | 1));
    const std::vector<int32_t> two = sample(Batch::dense(2, 1000), Batch::dense(2, 100), 1);
    EXPECT_NE(std::vector<int32_t>(two.begin(), two.begin() + 100), std::vector<int32_t>(two.begin() + 100, two.end()));
    EXPECT_EQ(std::vector<int32_t>(two.begin(), two.begin() + 100), sample(1000, 100, 1));
}

TEST_P(RandomSample, RaggedBatch) {
    const std::vector<int64_t> offsets = {0, 0, 5, 6, 6, 3006, 3263, 3263}, wanted = {0, 0, 5, 6, 6, 1006, 1006, 1006};
    for (const RandomSampleOptions& options : {kByIndex, kRandomOrder}) {
        const std::vector<int32_t> result = sample(Batch::ragged(offsets), Batch::ragged(wanted), 9, options);
        for (size_t i = 0; i + 1 < offsets.size(); ++i) {
            EXPECT_EQ(std::vector<int32_t>(result.begin() + wanted[i], result.begin() + wanted[i + 1]),
                      naive(offsets[i + 1] - offsets[i], wanted[i + 1] - wanted[i], 9, static_cast<int64_t>(i),
                            options.order))
                << "cloud " << i;
        }
    }
}

TEST_P(RandomSample, WithReplacement) {
    const std::vector<int32_t> result = sample(Batch::dense(3, 7), Batch::dense(3, 1000), 5, kReplacing);
    for (int64_t row = 0; row < 3000; ++row) {
        EXPECT_EQ(result[row], ops::random_sample_below(ops::random_sample_bits(5, row / 1000, row % 1000), 7));
        EXPECT_TRUE(result[row] >= 0 && result[row] < 7);
    }
    EXPECT_EQ(sample(1, 3, 5, kReplacing), (std::vector<int32_t>{0, 0, 0}));
}

TEST(RandomSampleCpu, BoundsOfTheScaledBits) {
    for (const uint64_t bound : {uint64_t{1}, uint64_t{3}, uint64_t{0x7FFFFFFF}}) {
        EXPECT_EQ(ops::random_sample_below(0, bound), 0);
        EXPECT_EQ(ops::random_sample_below(UINT64_MAX, bound), static_cast<int32_t>(bound - 1));
    }
    EXPECT_EQ(ops::random_sample_below(uint64_t{1} << 63, 10), 5);
    EXPECT_EQ(ops::random_sample_below((uint64_t{1} << 63) - 1, 10), 4);
}

TEST(RandomSampleCpu, ThreadsDoNotMatter) {
    expect_same_on_threads([] {
        std::vector<Array<float, 2>> results;
        for (const int64_t clouds : {1, 9}) {
            Array<int32_t, 1> indices({9 * 1000});
            Array<float, 2> result({1, 9 * 1000});
            ops::random_sample(Batch::dense(clouds, 900'000 / clouds), Batch::dense(clouds, 9000 / clouds), 3,
                               indices.view());
            std::copy(indices.span().begin(), indices.span().end(), result.data());
            results.push_back(std::move(result));
        }
        return results;
    });
}

TEST(RandomSampleCpu, SurvivesFailedAllocations) {
    Array<int32_t, 1> indices({50});
    for (const RandomSampleOptions& options : {kByIndex, kRandomOrder}) {
        const int64_t tried = for_each_allocation_failure(
            [&] { ops::random_sample(Batch::single(70'000), Batch::single(50), 1, indices.view(), options); });
        if (can_fail_allocations()) {
            EXPECT_GT(tried, 1);
        }
    }
}

TEST(RandomSampleCpu, LeavesNothingBehind) {
    Array<int32_t, 1> indices({50});
    const auto run = [&] { ops::random_sample(Batch::single(100), Batch::single(50), 1, indices.view()); };
    run();
    const int64_t before = live_allocations();
    for (int i = 0; i < 3000; ++i) run();
    EXPECT_EQ(live_allocations(), before);
}

TEST(RandomSampleErrors, WrongUse) {
    Array<int32_t, 1> indices({10});
    const auto message = [&](const Batch& points, const Batch& samples, View<int32_t, 1> out,
                             const RandomSampleOptions& options = {}) {
        const std::string text = bad_argument_of([&] { ops::random_sample(points, samples, 1, out, options); });
        EXPECT_EQ(text.find("random_sample: "), 0u) << text;
    };
    message(Batch::single(9), Batch::single(10), indices.view());
    message(Batch::ragged({0, 4, 20}), Batch::ragged({0, 5, 10}), indices.view());
    message(Batch::single(0), Batch::single(10), indices.view(), kReplacing);
    message(Batch::dense(2, 10), Batch::single(10), indices.view());
    message(Batch::single(20), Batch::single(11), indices.view());
    message(Batch::single(20), Batch::single(5), View<int32_t, 1>(indices.data(), {5}, {2}));
    message(Batch::single(int64_t{1} << 31), Batch::single(10), {nullptr, {10}});
    message(Batch::single(5), Batch::single(10), {nullptr, {10}, {DeviceType::cuda, 0}});
}

}  // namespace
}  // namespace stipple::test
