#include "stipple/core/utf8.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "stipple/core/rng.h"

namespace stipple {
namespace {

std::string encoded(char32_t code) {
    const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) return {static_cast<char>(code)};
    if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
    if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
    return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePointIsReadBack) {
    for (char32_t code = 0; code < 0x110000; ++code) {
        const std::string text = encoded(code) + "x";
        size_t at = 0;
        const char32_t read = next_code_point(text, at);
        const bool surrogate = code >= 0xd800 && code < 0xe000;
        ASSERT_EQ(read, surrogate ? kBadCode : code) << static_cast<uint32_t>(code);
        ASSERT_EQ(at, surrogate ? 1 : text.size() - 1) << static_cast<uint32_t>(code);
    }
}

// What begins no encoding of a code point is one bad byte; nothing behind the end is read (the bytes are on the heap,
// without a zero, for the sanitizers).
TEST(Utf8, BadBytesCountAlone) {
    std::map<std::string, char32_t> code_of;
    for (char32_t code = 0; code < 0x110000; ++code)
        if (code < 0xd800 || code >= 0xe000) code_of[encoded(code)] = code;
    const Rng rng(7);
    static constexpr unsigned char kEdges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                                               0xc1, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff};
    for (uint64_t trial = 0; trial < 200000; ++trial) {
        const size_t size = 1 + rng.below(8 * trial, 5);
        const auto bytes = std::make_unique<char[]>(size);
        for (size_t i = 0; i < size; ++i) {
            const uint64_t draw = 8 * trial + 1 + i;
            bytes[i] = static_cast<char>(trial % 2 ? kEdges[rng.below(draw, sizeof kEdges)] : rng.below(draw, 256));
        }
        const std::string_view text(bytes.get(), size);
        for (size_t at = 0; at < size;) {
            char32_t expected = kBadCode;
            size_t length = 1;
            for (size_t n = 1; n <= 4 && at + n <= size; ++n)
                if (const auto found = code_of.find(std::string(text.substr(at, n))); found != code_of.end()) {
                    expected = found->second, length = n;
                    break;
                }
            const size_t begin = at;
            ASSERT_EQ(next_code_point(text, at), expected);
            ASSERT_EQ(at, begin + length);
        }
    }
}

}  // namespace
}  // namespace stipple
