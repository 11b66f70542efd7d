#include "stipple/core/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "stipple/core/parallel.h"

namespace stipple {
namespace {

void expect_words(RandomBlock block, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    EXPECT_EQ(block.word[0], a);
    EXPECT_EQ(block.word[1], b);
    EXPECT_EQ(block.word[2], c);
    EXPECT_EQ(block.word[3], d);
}

// The known answers of Random123 [Salmon et al. 2011].
TEST(Philox, KnownAnswers) {
    expect_words(philox({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    constexpr uint32_t kOnes = 0xffffffff;
    expect_words(philox({{kOnes, kOnes, kOnes, kOnes}}, kOnes, kOnes), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
    expect_words(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0), 0xd16cfe09,
                 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(Rng, UsesPhiloxAsDocumented) {
    expect_words(Rng(0).block(0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    const Rng rng(0x299f31d0a4093822, 0x0370734413198a2e);
    expect_words(rng.block(0x85a308d3243f6a88), 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
    EXPECT_EQ(Rng(0).bits(1), 0xe169c58du);
    EXPECT_EQ(Rng(0).bits(3), 0x9b00dbd8u);
    EXPECT_EQ(Rng(0).uniform(0), static_cast<float>(0x6627e8d5u >> 8) * 0x1p-24f);
}

TEST(Rng, UniformsAreUniform) {
    constexpr int kCount = 1 << 18, kBins = 256;
    const Rng rng(42, 7);
    std::vector<int> bins(kBins);
    double sum = 0, sum_sq = 0, neighbours = 0;
    float previous = 0.5f;
    for (int i = 0; i < kCount; ++i) {
        const float u = rng.uniform(static_cast<uint64_t>(i));
        ASSERT_GE(u, 0.f);
        ASSERT_LT(u, 1.f);
        ++bins[static_cast<size_t>(u * kBins)];
        sum += u;
        sum_sq += double{u} * u;
        neighbours += (u - 0.5) * (previous - 0.5);
        previous = u;
    }
    const double mean = sum / kCount, variance = sum_sq / kCount - mean * mean;
    EXPECT_NEAR(mean, 0.5, 5 / std::sqrt(12.0 * kCount));
    EXPECT_NEAR(variance, 1 / 12.0, 5 / std::sqrt(180.0 * kCount));
    EXPECT_NEAR(neighbours / kCount * 12, 0, 5 / std::sqrt(double{kCount}));  // correlation of neighbours
    double chi_sq = 0;
    for (int count : bins) chi_sq += std::pow(count - kCount / kBins, 2) / (kCount / kBins);
    // 255 degrees of freedom: mean 255, deviation 22.6.
    EXPECT_GT(chi_sq, 255 - 5 * 22.6);
    EXPECT_LT(chi_sq, 255 + 5 * 22.6);
}

TEST(Rng, NormalsHaveTheirMoments) {
    constexpr int kCount = 1 << 18;
    const Rng rng(1234567);
    double moment[5] = {};
    for (int i = 0; i < kCount; ++i) {
        const double x = rng.normal(static_cast<uint64_t>(i));
        ASSERT_TRUE(std::isfinite(x));
        for (int k = 1; k <= 4; ++k) moment[k] += std::pow(x, k) / kCount;
    }
    const double deviation = 1 / std::sqrt(double{kCount});
    EXPECT_NEAR(moment[1], 0, 5 * deviation);
    EXPECT_NEAR(moment[2], 1, 5 * std::sqrt(2.0) * deviation);
    EXPECT_NEAR(moment[3], 0, 5 * std::sqrt(15.0) * deviation);
    EXPECT_NEAR(moment[4], 3, 5 * std::sqrt(96.0) * deviation);
}

TEST(Rng, BelowStaysBelow) {
    const Rng rng(3);
    std::vector<int> counts(7);
    for (uint64_t i = 0; i < 70000; ++i) {
        const uint32_t value = rng.below(i, 7);
        ASSERT_LT(value, 7u);
        ++counts[value];
        ASSERT_EQ(rng.below(i, 1), 0u);
    }
    for (int count : counts) EXPECT_NEAR(count, 10000, 5 * std::sqrt(70000.0 / 7 * 6 / 7));
    EXPECT_EQ(rng.below(5, 0xffffffffu), static_cast<uint32_t>((uint64_t{rng.bits(5)} * 0xffffffffu) >> 32));
}

TEST(Rng, SeedsStreamsAndIndicesDiffer) {
    int equal = 0;
    for (uint64_t i = 0; i < 10000; ++i) {
        equal += Rng(1).bits(i) == Rng(2).bits(i);
        equal += Rng(1, 0).bits(i) == Rng(1, 1).bits(i);
        equal += Rng(1, 0).bits(i) == Rng(1, uint64_t{1} << 32).bits(i);
        equal += Rng(1).bits(i) == Rng(uint64_t{1} << 32 | 1).bits(i);
        equal += Rng(1).bits(i) == Rng(1).bits(i + (uint64_t{1} << 40));
    }
    EXPECT_LE(equal, 1);
}

TEST(Rng, DoesNotDependOnThreads) {
    const auto draw = [](int count) {
        set_threads(count);
        std::vector<float> values(20000);
        parallel_for(20000, 100, [&](int64_t begin, int64_t end) {
            const Rng rng(99);
            for (int64_t i = begin; i < end; ++i)
                values[static_cast<size_t>(i)] =
                    i % 2 ? rng.normal(static_cast<uint64_t>(i)) : rng.uniform(static_cast<uint64_t>(i));
        });
        set_threads(0);
        return values;
    };
    const auto one = draw(1);
    EXPECT_EQ(one, draw(2));
    EXPECT_EQ(one, draw(7));
}

}  // namespace
}  // namespace stipple
