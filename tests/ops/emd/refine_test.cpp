#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "stipple/ops/emd/refine_cpu.h"

namespace stipple::ops::assignment {
namespace {

/// Random costs and prices, and a random matching.
struct Case {
    int n;
    std::vector<float> costs, price, profit;
    std::vector<int32_t> partner, owner;

    Case(int size, uint32_t seed) : n(size), costs(size * size), price(size), profit(size), partner(size), owner(size) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<float> unit(0.0f, 1.0f);
        for (float& c : costs) c = unit(random);
        for (float& p : price) p = unit(random);
        std::iota(partner.begin(), partner.end(), 0);
        std::shuffle(partner.begin(), partner.end(), random);
        for (int i = 0; i < n; ++i) owner[partner[i]] = i;
    }
    float cost(int i, int j) const { return costs[i * n + j]; }
    template <class Hit>
    void scan(int32_t i, float limit, const Hit& hit) const {
        for (int j = 0; j < n; ++j)
            if (value(i, j) <= limit) hit(j);
    }
    Matching matching() { return {price, profit, partner, owner}; }
    float value(int i, int j) const { return cost(i, j) + price[j]; }
    float least(int i) const {
        float least = value(i, 0);
        for (int j = 1; j < n; ++j) least = std::min(least, value(i, j));
        return least;
    }
    double matched() const {
        double sum = 0;
        for (int i = 0; i < n; ++i) sum += cost(i, partner[i]);
        return sum;
    }
};

TEST(EmdRefinement, WeightsHalveWithEveryTemperature) {
    EXPECT_EQ(weight_of(0.0f, 1.0f), 8192u);
    EXPECT_EQ(weight_of(1.0f, 1.0f), 4096u);
    EXPECT_EQ(weight_of(2.0f, 1.0f), 2048u);
    EXPECT_EQ(weight_of(0.5f, 1.0f), 6144u) << "linear between powers of two";
    EXPECT_EQ(weight_of(static_cast<float>(kCutoff), 1.0f), 0u);
    EXPECT_EQ(weight_of(INFINITY, 1.0f), 0u);
    for (float behind = 0.0f; behind < 5.0f; behind += 0.01f)
        EXPECT_GE(weight_of(behind, 1.0f), weight_of(behind + 0.01f, 1.0f)) << behind;
}

TEST(EmdRefinement, SharesOfABidderSumToItsMassButForRounding) {
    for (uint32_t count : {1u, 2u, 3u, 7u, 64u, 5000u}) {
        const uint32_t inverse = inverse_of_weights(count * 8192u), all = count * share_of(8192u, inverse);
        EXPECT_LE(all, 1u << kUnitMassBits) << count;
        EXPECT_GE(all + 2 * count, 1u << kUnitMassBits) << count;
    }
}

TEST(EmdRefinement, PricesMoveByTheLogarithmOfTheMass) {
    const uint64_t whole = uint64_t{1} << kUnitMassBits;
    const float temperature = 0.25f, step = kStepFactor * temperature;
    EXPECT_EQ(updated_price(3.0f, whole, temperature), 3.0f);
    EXPECT_EQ(updated_price(3.0f, whole + whole / 2, temperature), 3.0f + 0.5f * step);
    EXPECT_EQ(updated_price(3.0f, 2 * whole, temperature), 3.0f + step);
    EXPECT_EQ(updated_price(3.0f, 5000 * whole, temperature), 3.0f + step) << "no farther";
    EXPECT_EQ(updated_price(3.0f, 0, temperature), 3.0f - max_drop(temperature)) << "no farther";
    EXPECT_EQ(updated_price(0.01f, 0, temperature), 0.0f) << "never negative";
}

TEST(EmdRefinement, ProfitsAreTheLeastValuesWhereverPricesMove) {
    for (const float eps : {0.01f, 0.1f, 0.5f}) {  // candidates of a bidder: few, many, too many for a list
        Case one(700, 7);
        Refinement refine(one.matching(), eps, one);
        for (int step = 0; step < kMaxPriceUpdates; ++step) {
            refine.find_profits();
            for (int i = 0; i < one.n; ++i)
                ASSERT_EQ(one.profit[i], one.least(i)) << "bidder " << i << " step " << step;
            refine.update_prices();
        }
    }
}

TEST(EmdRefinement, PriceUpdatesCloseTheGapOfRoughPrices) {
    Case one(200, 8);
    std::fill(one.price.begin(), one.price.end(), 1.0f);
    Refinement refine(one.matching(), 0.05f, one);
    const auto bound = [&] {
        double sum = 0;
        for (int i = 0; i < one.n; ++i) sum += one.profit[i] - one.price[i];
        return sum;
    };
    refine.find_profits();
    const double before = bound();
    double best = before;
    for (int step = 0; step < kMaxPriceUpdates; ++step) {
        refine.update_prices();
        refine.find_profits();
        best = std::max(best, bound());
    }
    EXPECT_GT(best, 1.2 * before);
}

TEST(EmdRefinement, PairsThatCrossAreSwapped) {
    Case one(2, 1);
    one.costs = {0.0f, 0.5f, 0.5f, 0.0f};
    one.price = {1.0f, 1.0f};
    one.partner = one.owner = {1, 0};
    Refinement refine(one.matching(), 0.5f, one);
    refine.find_profits();
    EXPECT_TRUE(refine.swap_partners());
    EXPECT_EQ(one.partner, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(one.owner, (std::vector<int32_t>{0, 1}));
    EXPECT_FALSE(refine.swap_partners()) << "no swap gains any more";
}

TEST(EmdRefinement, SwapsLowerTheCostUntilNoneGains) {
    Case one(150, 9);
    std::fill(one.price.begin(), one.price.end(), 0.0f);
    const float eps = 1.0f;  // every object is a candidate
    Refinement refine(one.matching(), eps, one);
    refine.find_profits();
    double cost = one.matched();
    int rounds = 0;
    for (; refine.swap_partners(); ++rounds) {
        ASSERT_LT(one.matched(), cost);
        cost = one.matched();
        for (int i = 0; i < one.n; ++i) ASSERT_EQ(one.owner[one.partner[i]], i);
    }
    EXPECT_GT(rounds, 2);
    for (int i = 0; i < one.n; ++i)
        for (int k = 0; k < i; ++k)
            EXPECT_LE(swap_gain(one.cost(i, one.partner[i]), one.cost(k, one.partner[k]), one.cost(i, one.partner[k]),
                                one.cost(k, one.partner[i])),
                      eps / 64)
                << i << " and " << k;
}

}  // namespace
}  // namespace stipple::ops::assignment
