#include "stipple/engine/calibrate/magnitude_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/engine/program/round_fp8.h"

namespace stipple::engine {
namespace {

std::vector<float> normals(int64_t n, uint64_t seed) {
    const Rng rng(seed);
    std::vector<float> values(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) values[i] = rng.normal(static_cast<uint64_t>(i));
    return values;
}

MagnitudeHistogram of(const std::vector<float>& values) {
    MagnitudeHistogram histogram;
    histogram.add(values.data(), static_cast<int64_t>(values.size()));
    return histogram;
}

/// Mean square of what rounding to 127 steps of `range` loses.
double int8_loss(const std::vector<float>& values, float range) {
    double sum = 0;
    for (const float x : values) {
        const double q = std::clamp(std::nearbyint(x / range * 127.0), -127.0, 127.0) * range / 127;
        sum += (x - q) * (x - q);
    }
    return sum / static_cast<double>(values.size());
}

TEST(EngineHistogram, PercentilesAreThoseOfTheSortedValues) {
    std::vector<float> values = normals(100'000, 1);
    for (size_t i = 0; i < values.size(); i += 3) values[i] = 0;  // as ReLU leaves them
    const MagnitudeHistogram histogram = of(values);
    for (float& x : values) x = std::abs(x);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(histogram.count(), 100'000);
    EXPECT_EQ(histogram.largest(), values.back());
    for (const double percent : {50.0, 90.0, 99.0, 99.9, 99.99}) {
        const float exact = values[static_cast<size_t>(std::ceil(percent / 100 * 100'000)) - 1];
        // A bin is at most largest / 2048 wide, and the answer is the upper edge of the bin.
        EXPECT_GE(histogram.percentile(percent), exact) << percent;
        EXPECT_LE(histogram.percentile(percent), exact + histogram.largest() / 2048) << percent;
    }
    EXPECT_EQ(histogram.percentile(100), histogram.largest());
}

TEST(EngineHistogram, OrderAndThreadsDoNotMatter) {
    const std::vector<float> small = normals(70'000, 2);
    std::vector<float> large = normals(70'000, 3);
    for (float& x : large) x *= 1000;
    const auto both = [&](const std::vector<float>& first, const std::vector<float>& second, int threads) {
        set_threads(threads);
        MagnitudeHistogram histogram;
        histogram.add(first.data(), static_cast<int64_t>(first.size()));
        histogram.add(second.data(), static_cast<int64_t>(second.size()));
        set_threads(0);
        return histogram;
    };
    const MagnitudeHistogram a = both(small, large, 1), b = both(large, small, 3);
    for (const double percent : {10.0, 49.0, 51.0, 99.0, 99.99})
        EXPECT_EQ(a.percentile(percent), b.percentile(percent));
    EXPECT_EQ(a.entropy_range(Precision::int8), b.entropy_range(Precision::int8));
    EXPECT_EQ(a.largest(), b.largest());
}

TEST(EngineHistogram, EntropyCutsOutliersAndKeepsTheRest) {
    std::vector<float> values = normals(200'000, 4);
    values[17] = 80;  // one value far away must not cost all others their steps
    const MagnitudeHistogram histogram = of(values);
    const float range = histogram.entropy_range(Precision::int8);
    EXPECT_GT(range, 3);
    EXPECT_LT(range, 12);
    EXPECT_LT(int8_loss(values, range), int8_loss(values, histogram.largest()));
    // A uniform distribution uses its whole range.
    const Rng rng(5);
    for (size_t i = 0; i < values.size(); ++i) values[i] = rng.uniform(i);
    EXPECT_GT(of(values).entropy_range(Precision::int8), 0.95f);
    // fp8 has steps near zero that are as fine as anybody wants: it never needs to cut much.
    EXPECT_GT(of(values).entropy_range(Precision::fp8), 0.5f);
}

TEST(EngineHistogram, SpecialValues) {
    EXPECT_EQ(of({0, 0, 0}).percentile(99), 0);
    EXPECT_EQ(of({0, 0, 0}).entropy_range(Precision::int8), 0);
    EXPECT_EQ(of({-2}).largest(), 2);
    EXPECT_EQ(of({-2}).percentile(50), 2);
    EXPECT_EQ(of({-2}).entropy_range(Precision::int8), 2);
    EXPECT_EQ(of({1e-30f, 1e30f}).largest(), 1e30f);
    EXPECT_EQ(of({1e-42f}).largest(), 1e-42f);  // below the normal numbers
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
        try {
            of({1, bad});
            ADD_FAILURE() << bad;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::not_finite);
        }
    }
}

TEST(EngineRoundFp8, IsTheNearestOfAllNumbers) {
    // All non-negative e4m3 numbers, from their bits.
    std::vector<float> numbers;
    for (int bits = 0; bits < 0x7f; ++bits) {
        const int exponent = bits >> 3, mantissa = bits & 7;
        numbers.push_back(exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10));
    }
    ASSERT_EQ(numbers.back(), 448);
    for (size_t i = 0; i < numbers.size(); ++i) {
        EXPECT_EQ(round_e4m3(numbers[i]), numbers[i]);
        EXPECT_EQ(round_e4m3(-numbers[i]), -numbers[i]);
        if (i == 0) continue;
        const float middle = (numbers[i - 1] + numbers[i]) / 2;
        EXPECT_EQ(round_e4m3(std::nextafter(middle, 0.0f)), numbers[i - 1]) << middle;
        EXPECT_EQ(round_e4m3(std::nextafter(middle, 1e9f)), numbers[i]) << middle;
        EXPECT_EQ(round_e4m3(middle), numbers[i % 2 ? i - 1 : i]) << middle;  // the even one
    }
    EXPECT_EQ(round_e4m3(1e9f), 448);
    EXPECT_EQ(round_e4m3(-INFINITY), -448);
    EXPECT_TRUE(std::isnan(round_e4m3(NAN)));
    EXPECT_EQ(round_e4m3(1e-9f), 0);
}

}  // namespace
}  // namespace stipple::engine
