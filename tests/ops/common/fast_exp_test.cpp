#include "stipple/ops/common/fast_exp.h"

#include <gtest/gtest.h>

#include <limits>

namespace stipple::ops {
namespace {

TEST(FastExp, PowersOfTwoAreWithinTheBoundOverTheWholeRange) {
    double worst = 0;
    for (double x = -126; x < 127.99; x += 0.000377) {
        const float argument = static_cast<float>(x);
        const double exact = std::exp2(static_cast<double>(argument));
        worst = std::max(worst, std::abs(fast_exp2(argument) - exact) / exact);
    }
    EXPECT_LT(worst, 1.5e-7);
    for (int n = -126; n < 128; ++n)  // no step at the integers and halves where the polynomial changes
        for (const float r : {-0.5f, -0.49999997f, 0.0f, 0.49999997f}) {
            const double exact = std::exp2(static_cast<double>(static_cast<float>(n) + r));
            if (static_cast<float>(n) + r < -126 || exact > 3.4e38) continue;
            EXPECT_NEAR(fast_exp2(static_cast<float>(n) + r) / exact, 1.0, 1.5e-7) << n << " " << r;
        }
}

TEST(FastExp, FollowsStdExp) {
    for (double x = -87; x < 88; x += 0.00093) {
        const float argument = static_cast<float>(x);
        const double exact = std::exp(static_cast<double>(argument));
        ASSERT_NEAR(fast_exp(argument) / exact, 1.0, 2e-7 * (1 + std::abs(x))) << x;
    }
}

TEST(FastExp, IsTheSmallestNormalNumberBelowItsRange) {
    for (const float x : {-126.0f, -126.5f, -1000.0f, -1e10f, -3e38f, -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
        EXPECT_NEAR(fast_exp2(x), std::numeric_limits<float>::min(), 3e-45f) << x;
}

}  // namespace
}  // namespace stipple::ops
