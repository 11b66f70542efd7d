#pragma once
// UTF-8, one code point at a time.

#include <cstddef>
#include <string_view>

namespace stipple {

inline constexpr char32_t kBadCode = 0xfffd;

/// The code point that begins at byte `at` < text.size(); `at` moves behind it. A byte that begins no code point
/// (overlong forms, surrogates, codes above 0x10ffff, and sequences cut short included) is kBadCode and counts alone.
inline char32_t next_code_point(std::string_view text, size_t& at) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const size_t begin = at++;
    const unsigned first = byte(begin);
    if (first < 0x80) return first;
    const size_t more = first >= 0xf8 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : 0;
    if (more == 0) return kBadCode;
    char32_t code = first & (0x3fu >> more);
    for (size_t i = 1; i <= more; ++i) {
        if ((byte(begin + i) & 0xc0) != 0x80) return kBadCode;
        code = code << 6 | (byte(begin + i) & 0x3f);
    }
    const char32_t least = more == 3 ? 0x10000 : more == 2 ? 0x800 : 0x80;
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return kBadCode;
    at = begin + 1 + more;
    return code;
}

}  // namespace stipple
