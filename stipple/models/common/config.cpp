#include "stipple/models/common/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/nearest_name.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/text.h"

namespace stipple::models {

std::string config_text(int64_t value) {
    return std::to_string(value);
}

std::string config_text(bool value) {
    return value ? "true" : "false";
}

std::string config_text(float value) {
    std::string text;
    io::append_number(text, value);
    return text;
}

const std::string* ConfigReader::find(const std::string& key) {
    known_.push_back(key);
    const auto found = config_.find(key);
    return found == config_.end() ? nullptr : &found->second;
}

void ConfigReader::refuse(const std::string& key, const std::string& text, const std::string& expected) const {
    throw Error(ErrorCode::bad_config,
                fmt::format("{}: {} must be {}, got {}", model_, key, expected, io::in_quotes(text)));
}

void ConfigReader::read(const std::string& key, int64_t& value) {
    if (const std::string* text = find(key))
        if (!io::parse_number(*text, value)) refuse(key, *text, "a whole number");
}

void ConfigReader::read(const std::string& key, bool& value) {
    const std::string* text = find(key);
    if (!text) return;
    if (*text != "true" && *text != "false") refuse(key, *text, "true or false");
    value = *text == "true";
}

void ConfigReader::read(const std::string& key, float& value) {
    const std::string* text = find(key);
    if (!text) return;
    double number = 0;
    if (!io::parse_number(*text, number) || !std::isfinite(number)) refuse(key, *text, "a number");
    value = static_cast<float>(number);
}

void ConfigReader::read(const std::string& key, std::optional<float>& value) {
    float number = 0;
    read(key, number);
    if (config_.count(key)) value = number;
}

void ConfigReader::read(const std::string& key, const std::vector<std::string>& words, int64_t& value) {
    const std::string* text = find(key);
    if (!text) return;
    const auto found = std::find(words.begin(), words.end(), *text);
    if (found == words.end()) refuse(key, *text, fmt::format("{}", fmt::join(words, " or ")));
    value = found - words.begin();
}

void ConfigReader::finish() const {
    for (const auto& [key, text] : config_) {
        if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
        const std::string near = nearest_name(key, known_);
        throw Error(
            ErrorCode::bad_config, fmt::format("{} has no option {}", model_, io::in_quotes(key)),
            near.empty() ? fmt::format("it has {}", fmt::join(known_, ", ")) : fmt::format("did you mean {}?", near));
    }
}

}  // namespace stipple::models
