#pragma once
// Numbers and words of text formats. No locale, no fixed buffers: a comma never becomes a decimal point, a long token
// never overflows.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace stipple::io {

/// Exactly one number: decimal or scientific, an optional sign (also '+'), nan and inf in any case. Correctly rounded.
/// False for anything else, trailing characters and overflow included.
bool parse_number(std::string_view token, double& value);
bool parse_number(std::string_view token, int64_t& value);

/// Reads one number at `at` and moves past it; false (and unmoved) when there is none. The caller checks what follows.
bool scan_number(const char*& at, const char* end, double& value);

inline bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/// Cuts the next blank-separated word off the front of `text`; empty when none is left.
std::string_view next_word(std::string_view& text);

/// Calls body(word, line) for the words of a text that people write: blanks, commas and line ends separate them, '#'
/// begins a comment; lines count from 1. Returns the number of lines.
int64_t for_each_word(std::string_view text, const std::function<void(std::string_view word, int64_t line)>& body);

std::string_view trimmed(std::string_view text);
std::string lower_case(std::string_view text);

/// The shortest text that reads back as the same number.
void append_number(std::string& text, float value);
void append_number(std::string& text, double value);
void append_number(std::string& text, int64_t value);

/// origin + position in the shortest decimal text that says both exactly: "500000.123", not "500000.12300000002".
/// `origin` must be a whole number (as choose_origin gives) for that; for any other the float64 sum is written.
void append_world(std::string& text, double origin, float position);

}  // namespace stipple::io
