// 16-bit floats against the definition.

#include "stipple/core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stipple/core/dtype.h"

namespace stipple::test {
namespace {

// All 65536 patterns, through the converter that the readers of files use.
TEST(CoreHalf, EveryPatternReadsAsItsValueAndWritesBack) {
    for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
        const auto bits = static_cast<uint16_t>(pattern);
        const double half = load_as_double(DType::f16, &bits), bfloat = load_as_double(DType::bf16, &bits);
        if (std::isnan(half)) {
            EXPECT_TRUE(std::isnan(half_to_float(bits)));
            EXPECT_TRUE(std::isnan(half_to_float(float_to_half(half_to_float(bits)))));
        } else {
            EXPECT_EQ(half_to_float(bits), half) << pattern;
            EXPECT_EQ(float_to_half(half_to_float(bits)), bits);
        }
        if (std::isnan(bfloat)) {
            EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(bfloat16_to_float(bits)))));
        } else {
            EXPECT_EQ(bfloat16_to_float(bits), bfloat) << pattern;
            EXPECT_EQ(float_to_bfloat16(bfloat16_to_float(bits)), bits);
        }
    }
}

// Between two neighbours: the middle goes to the even one, what is beside it to the nearer.
template <class ToFloat, class ToBits>
void expect_nearest_even(uint16_t last, ToFloat to_float, ToBits to_bits) {
    for (uint32_t pattern = 0; pattern < last; ++pattern) {
        const auto low = static_cast<uint16_t>(pattern), high = static_cast<uint16_t>(pattern + 1);
        const auto middle = static_cast<float>((double{to_float(low)} + double{to_float(high)}) / 2);
        EXPECT_EQ(to_bits(middle), pattern % 2 == 0 ? low : high) << pattern;
        EXPECT_EQ(to_bits(std::nextafter(middle, 0.0f)), low) << pattern;
        EXPECT_EQ(to_bits(std::nextafter(middle, INFINITY)), high) << pattern;
        EXPECT_EQ(to_bits(-middle), 0x8000u | (pattern % 2 == 0 ? low : high)) << pattern;
    }
}

TEST(CoreHalf, RoundsToNearestEven) {
    expect_nearest_even(0x7bff, half_to_float, float_to_half);
    expect_nearest_even(0x7f7f, bfloat16_to_float, float_to_bfloat16);
}

TEST(CoreHalf, BeyondTheLargestComesInfinity) {
    EXPECT_EQ(float_to_half(65504), 0x7bff);
    EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
    EXPECT_EQ(float_to_half(65520), 0x7c00);
    EXPECT_EQ(float_to_half(-INFINITY), 0xfc00);
    EXPECT_EQ(float_to_half(1e-30f), 0);
    EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
    EXPECT_EQ(float_to_bfloat16(INFINITY), 0x7f80);
    // A NaN whose upper bits are zero must not become an infinity.
    EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace stipple::test
