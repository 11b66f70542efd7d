#include "stipple/io/common/protobuf_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace stipple::io {
namespace {

std::string hex(const ProtobufWriter& writer) {
    std::string text;
    for (const std::byte byte : writer.data()) {
        constexpr char kDigits[] = "0123456789abcdef";
        text += kDigits[static_cast<int>(byte) >> 4];
        text += kDigits[static_cast<int>(byte) & 15];
    }
    return text;
}

// The examples of the format's own documentation (protobuf.dev, "Encoding").
TEST(ProtobufWriter, WritesTheExamplesOfTheFormat) {
    ProtobufWriter test1;
    test1.integer(1, 150);
    EXPECT_EQ(hex(test1), "089601");
    ProtobufWriter test2;
    test2.text(2, "testing");
    EXPECT_EQ(hex(test2), "120774657374696e67");
    ProtobufWriter test3;
    test3.message(3, test1);
    EXPECT_EQ(hex(test3), "1a03089601");
    ProtobufWriter test5;
    test5.packed(6, std::vector<int64_t>{3, 270, 86942});
    EXPECT_EQ(hex(test5), "3206038e029ea705");
}

TEST(ProtobufWriter, WritesNumbersAtTheirEnds) {
    const auto written = [](int64_t value) {
        ProtobufWriter writer;
        writer.integer(1, value);
        return hex(writer);
    };
    EXPECT_EQ(written(0), "0800");
    EXPECT_EQ(written(127), "087f");
    EXPECT_EQ(written(128), "088001");
    EXPECT_EQ(written(-1), "08ffffffffffffffffff01");
    EXPECT_EQ(written(std::numeric_limits<int64_t>::max()), "08ffffffffffffffff7f");
    ProtobufWriter writer;
    writer.real(2, -2.0f);
    writer.integer(20, 7);  // a key of two bytes
    writer.real(1, -2.0);
    EXPECT_EQ(hex(writer), "15000000c0a001070900000000000000c0");
}

TEST(ProtobufWriter, WritesNothingAsNothing) {
    ProtobufWriter writer;
    writer.text(1, "");
    writer.packed(2, {});
    writer.message(3, ProtobufWriter());
    EXPECT_EQ(hex(writer), "0a0012001a00");
    EXPECT_EQ(writer.take().size(), 6u);
}

}  // namespace
}  // namespace stipple::io
