#include "stipple/core/number_text.h"

#include <gtest/gtest.h>

namespace stipple {
namespace {

TEST(CoreNumberText, GroupsOfThree) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(40256), "40,256");
    EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

TEST(CoreNumberText, BytesInUnitsOfThousand) {
    EXPECT_EQ(bytes_text(999), "999 B");
    EXPECT_EQ(bytes_text(1200), "1.2 kB");
    EXPECT_EQ(bytes_text(999499), "999 kB");
    EXPECT_EQ(bytes_text(999500), "1 MB");
    EXPECT_EQ(bytes_text(int64_t{5} << 50), "5.63e+03 TB");
}

}  // namespace
}  // namespace stipple
