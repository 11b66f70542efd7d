#include "stipple/core/json_reader.h"

#include <cmath>
#include <limits>

#include "stipple/core/error.h"
#include "stipple/core/quoted.h"

namespace stipple {

std::string_view JsonField::word() {
    const size_t slash = rest_.find('/');
    const std::string_view first = rest_.substr(0, slash);
    rest_ = slash == std::string_view::npos ? std::string_view() : rest_.substr(slash + 1);
    return first;
}

std::string_view JsonField::last_word(std::string_view& before) {
    const size_t slash = rest_.rfind('/');
    const std::string_view last = slash == std::string_view::npos ? rest_ : rest_.substr(slash + 1);
    before = slash == std::string_view::npos ? std::string_view() : rest_.substr(0, slash);
    rest_ = {};
    return last;
}

bool JsonField::is_next_element(size_t size) {
    const std::string_view index = word();
    const bool is_next = index == fmt::format("{}", size);
    const bool is_last = size > 0 && index == fmt::format("{}", size - 1);
    if (rest_.empty() || (!is_next && !is_last)) fail("is not where it belongs");
    return is_next;
}

void JsonField::require_leaf() const {
    if (!rest_.empty()) fail("is not known");
}

int64_t JsonField::whole_number(int64_t least, int64_t most) const {
    require_leaf();
    if (value_.kind != JsonValue::Kind::integer || value_.integer < least || value_.integer > most)
        fail("must be a whole number");
    return value_.integer;
}

void JsonField::take(std::string& to) const {
    require_leaf();
    if (value_.kind != JsonValue::Kind::string) fail("must be text");
    to = value_.text;
}

void JsonField::take(int32_t& to) const {
    to = static_cast<int32_t>(whole_number(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

void JsonField::take(int64_t& to) const {
    to = whole_number(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

void JsonField::take(double& to) const {
    require_leaf();
    if (value_.kind != JsonValue::Kind::integer && value_.kind != JsonValue::Kind::number) fail("must be a number");
    to = value_.number;
}

void JsonField::take(float& to) const {
    double number = 0;
    take(number);
    if (!(std::abs(number) <= std::numeric_limits<float>::max())) fail("must be a number of float32");
    to = static_cast<float>(number);
}

void JsonField::take(bool& to) const {
    require_leaf();
    if (value_.kind != JsonValue::Kind::boolean) fail("must be true or false");
    to = value_.integer != 0;
}

size_t JsonField::take_word(std::span<const std::string_view> words) const {
    require_leaf();
    if (value_.kind == JsonValue::Kind::string)
        for (size_t i = 0; i < words.size(); ++i)
            if (words[i] == value_.text) return i;
    constexpr size_t kMostListed = 8;
    if (words.size() > kMostListed) fail("is no word that belongs there");
    std::string list;
    for (size_t i = 0; i < words.size(); ++i)
        list += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
    fail("must be " + list);
}

void JsonField::fail(std::string_view reason) const {
    throw Error(ErrorCode::bad_file, fmt::format("{}: {} {}", what_, in_quotes(path_), reason));
}

void read_json(std::string_view what, std::string_view text, const std::function<void(JsonField&)>& visit) {
    const bool valid = walk_json(text, [&](std::string_view path, const JsonValue& value) {
        JsonField field(what, path, value);
        visit(field);
    });
    if (!valid) throw Error(ErrorCode::bad_file, fmt::format("{} is no JSON object", what));
}

}  // namespace stipple
