#include "stipple/core/json_writer.h"

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/json_events.h"

namespace stipple {

JsonWriter& JsonWriter::put(std::string_view piece) {
    if (needs_comma_) text_ += ',';
    text_ += piece;
    needs_comma_ = true;
    return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
    put({&bracket, 1});
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
    text_ += bracket;
    needs_comma_ = true;
    return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
    put(json_string(name) + ":");
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
    return put(json_string(text));
}

JsonWriter& JsonWriter::value(double number) {
    STIPPLE_REQUIRE(std::isfinite(number), "JSON has no number {}", number);
    std::string text = fmt::format("{}", number);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return put(text);
}

}  // namespace stipple
