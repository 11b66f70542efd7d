#include "stipple/core/checked.h"

#include <gtest/gtest.h>

namespace stipple {
namespace {

constexpr int64_t kTwoTo31 = int64_t{1} << 31;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

template <class F>
void expect_bad_argument(F f) {
    try {
        f();
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
    }
}

TEST(CheckedArithmetic, IsExactUpToTheLimit) {
    EXPECT_EQ(checked_mul(kTwoTo31, kTwoTo31), int64_t{1} << 62);
    EXPECT_EQ(checked_mul(kTwoTo31 - 1, kTwoTo31 + 1), (int64_t{1} << 62) - 1);
    EXPECT_EQ(checked_mul(kMax, 1), kMax);
    EXPECT_EQ(checked_mul(kMax, 0), 0);
    EXPECT_EQ(checked_mul(kMax / 3, 3), kMax / 3 * 3);
    EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
    EXPECT_EQ(checked_add(kTwoTo31, kTwoTo31), int64_t{1} << 32);
}

TEST(CheckedArithmetic, ThrowsBeyondIt) {
    expect_bad_argument([] { checked_mul(int64_t{1} << 32, kTwoTo31); });  // 2^63
    expect_bad_argument([] { checked_mul(kMax, 2); });
    expect_bad_argument([] { checked_mul(kMax / 2 + 1, 2); });
    expect_bad_argument([] { checked_add(kMax, 1); });
    expect_bad_argument([] { checked_add(kMax, kMax); });
}

TEST(CheckedNarrow, At31Bits) {
    EXPECT_EQ(checked_narrow<int32_t>(kTwoTo31 - 1, "n"), 0x7fffffff);
    EXPECT_EQ(checked_narrow<int32_t>(-kTwoTo31, "n"), std::numeric_limits<int32_t>::min());
    EXPECT_EQ(checked_narrow<uint32_t>(kTwoTo31, "n"), 0x80000000u);
    expect_bad_argument([] { checked_narrow<int32_t>(kTwoTo31, "n"); });
    expect_bad_argument([] { checked_narrow<int32_t>(-kTwoTo31 - 1, "n"); });
    expect_bad_argument([] { checked_narrow<int32_t>(uint32_t{0x80000000u}, "n"); });
    expect_bad_argument([] { checked_narrow<uint32_t>(int64_t{1} << 32, "n"); });
    expect_bad_argument([] { checked_narrow<uint32_t>(-1, "n"); });
}

TEST(CheckedNarrow, At63Bits) {
    EXPECT_EQ(checked_narrow<int64_t>(static_cast<uint64_t>(kMax), "n"), kMax);
    EXPECT_EQ(checked_narrow<uint64_t>(kMax, "n"), static_cast<uint64_t>(kMax));
    expect_bad_argument([] { checked_narrow<int64_t>(static_cast<uint64_t>(kMax) + 1, "n"); });
    expect_bad_argument([] { checked_narrow<uint64_t>(int64_t{-1}, "n"); });
    expect_bad_argument([] { checked_narrow<int32_t>(uint64_t{1} << 63, "n"); });
}

TEST(CheckedNarrow, NamesWhatDoesNotFit) {
    try {
        checked_narrow<int32_t>(kTwoTo31, "the number of points");
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "the number of points 2147483648 does not fit in 32 bits");
    }
}

}  // namespace
}  // namespace stipple
