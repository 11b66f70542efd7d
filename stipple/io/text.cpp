#include "stipple/io/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>

namespace stipple::io {
namespace {

// Powers of ten that a double holds exactly: with a mantissa below 2^53 one multiplication or division by them is
// correctly rounded [Clinger 1990], which covers nearly every number in a cloud.
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool is_digit(char c) {
    return static_cast<unsigned char>(c - '0') < 10;
}

// Whatever the fast path does not decide: long mantissas, large exponents, nan, inf.
bool scan_slowly(const char*& at, const char* end, double& value) {
    const char* begin = at;
    if (begin < end && *begin == '+') {
        ++begin;
        if (begin < end && (*begin == '-' || *begin == '+')) return false;
    }
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc()) return false;
    at = stop;
    return true;
}

template <class T>
void append_shortest(std::string& text, T value) {
    constexpr size_t kLongest = 32;  // of a shortest float64, sign and exponent included: 24
    const size_t length = text.size();
    text.resize(length + kLongest);
    const auto [end, error] = std::to_chars(text.data() + length, text.data() + length + kLongest, value);
    text.resize(static_cast<size_t>(end - text.data()));
}

}  // namespace

bool scan_number(const char*& at, const char* end, double& value) {
    const char* p = at;
    bool negative = false;
    if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
    uint64_t mantissa = 0;
    int digits = 0, exponent = 0;
    while (p < end && is_digit(*p)) {
        mantissa = mantissa * 10 + static_cast<uint64_t>(*p++ - '0');
        ++digits;
    }
    if (p < end && *p == '.') {
        ++p;
        const char* fraction = p;
        while (p < end && is_digit(*p)) mantissa = mantissa * 10 + static_cast<uint64_t>(*p++ - '0');
        exponent = -static_cast<int>(p - fraction < 1000 ? p - fraction : 1000);
        digits -= exponent;
    }
    if (digits == 0 || digits > 18) return scan_slowly(at, end, value);
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char* q = p + 1;
        bool negative_exponent = false;
        if (q < end && (*q == '-' || *q == '+')) negative_exponent = *q++ == '-';
        int written = 0;
        const char* first = q;
        while (q < end && is_digit(*q) && q - first < 5) written = written * 10 + (*q++ - '0');
        if (q == first || q - first == 5) return scan_slowly(at, end, value);
        exponent += negative_exponent ? -written : written;
        p = q;
    }
    if (mantissa >= (uint64_t{1} << 53) || exponent < -22 || exponent > 22) return scan_slowly(at, end, value);
    const auto whole = static_cast<double>(mantissa);
    const double magnitude = exponent < 0 ? whole / kPowers[-exponent] : whole * kPowers[exponent];
    value = negative ? -magnitude : magnitude;
    at = p;
    return true;
}

bool parse_number(std::string_view token, double& value) {
    const char* at = token.data();
    const char* end = at + token.size();
    return scan_number(at, end, value) && at == end;
}

bool parse_number(std::string_view token, int64_t& value) {
    const char* begin = token.data();
    const char* end = begin + token.size();
    if (begin < end && *begin == '+') {
        ++begin;
        if (begin == end || !is_digit(*begin)) return false;
    }
    const auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc() && stop == end;
}

std::string_view next_word(std::string_view& text) {
    size_t begin = 0;
    while (begin < text.size() && is_blank(text[begin])) ++begin;
    size_t end = begin;
    while (end < text.size() && !is_blank(text[end])) ++end;
    const std::string_view word = text.substr(begin, end - begin);
    text.remove_prefix(end);
    return word;
}

int64_t for_each_word(std::string_view text, const std::function<void(std::string_view word, int64_t line)>& body) {
    int64_t lines = 0;
    while (!text.empty()) {
        ++lines;
        const size_t line_end = std::min(text.find('\n'), text.size());
        std::string line(text.substr(0, std::min(text.substr(0, line_end).find('#'), line_end)));
        text.remove_prefix(std::min(line_end + 1, text.size()));
        std::replace(line.begin(), line.end(), ',', ' ');
        std::string_view rest = line;
        for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) body(word, lines);
    }
    return lines;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

std::string lower_case(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

void append_number(std::string& text, float value) {
    append_shortest(text, value);
}
void append_number(std::string& text, double value) {
    append_shortest(text, value);
}
void append_number(std::string& text, int64_t value) {
    append_shortest(text, value);
}

void append_world(std::string& text, double origin, float position) {
    if (origin == 0) return append_number(text, position);
    if (!std::isfinite(position)) return append_number(text, position);
    // The shortest decimal of the float is D * 10^-decimals; the sum with an origin of few decimals is exact in 128
    // bits.
    char digits[40];
    const char* end = std::to_chars(digits, digits + sizeof digits, position, std::chars_format::scientific).ptr;
    unsigned __int128 sum =
        0;  // two's complement: unsigned, because clang's checks of signed 128 bits need compiler-rt
    int decimals = 0;
    bool after_point = false;
    const char* p = digits;
    const bool negative = *p == '-';
    for (p += negative; p < end && *p != 'e'; ++p) {
        if (*p == '.') {
            after_point = true;
            continue;
        }
        sum = sum * 10 + (*p - '0');
        decimals += after_point;
    }
    int exponent = 0;
    const char* exponent_digits = p + 1 + (p + 1 < end && p[1] == '+');
    std::from_chars(exponent_digits, end, exponent);
    decimals -= exponent;
    constexpr int kMostDecimals = 18, kOriginDecimals = 6;  // the latter as choose_origin() has them
    double whole = origin, power = 1;
    int origin_decimals = 0;
    while (whole / power != origin || whole != std::trunc(whole)) {
        if (++origin_decimals > kOriginDecimals) break;
        power *= 10;
        whole = std::round(origin * power);
    }
    if (decimals < -18 || decimals > kMostDecimals || origin_decimals > kOriginDecimals || std::abs(whole) > 9e15)
        return append_number(text, origin + static_cast<double>(position));
    for (; decimals < origin_decimals; ++decimals) sum *= 10;
    if (negative) sum = -sum;
    auto shifted = static_cast<unsigned __int128>(static_cast<__int128>(whole));
    for (int i = origin_decimals; i < decimals; ++i) shifted *= 10;
    sum += shifted;
    if (sum >> 127) {
        text += '-';
        sum = -sum;
    }
    for (; origin_decimals > 0 && decimals > 0 && sum % 10 == 0; --decimals) sum /= 10;  // 0.5 + 0.25 + 0.25
    char backwards[48];                                                                  // 2^127 has 39 digits
    int length = 0;
    for (; sum > 0 || length <= decimals; ++length, sum /= 10)
        backwards[length] = static_cast<char>('0' + static_cast<int>(sum % 10));
    for (int i = length; i-- > 0;) {
        text += backwards[i];
        if (i == decimals && decimals > 0) text += '.';
    }
}

}  // namespace stipple::io
