#include "stipple/core/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "stipple/core/error.h"

namespace stipple {

struct JsonPrinter {
    static nlohmann::ordered_json convert(const Json& json) {
        switch (json.kind_) {
            case Json::Kind::null: return nullptr;
            case Json::Kind::boolean: return json.boolean_;
            case Json::Kind::integer: return json.integer_;
            case Json::Kind::natural: return json.natural_;
            case Json::Kind::real: return json.real_;
            case Json::Kind::string: return json.text_;
            case Json::Kind::array: {
                nlohmann::ordered_json array = nlohmann::ordered_json::array();
                for (const Json& item : json.items_) array.push_back(convert(item));
                return array;
            }
            case Json::Kind::object: {
                nlohmann::ordered_json object = nlohmann::ordered_json::object();
                for (size_t i = 0; i < json.items_.size(); ++i) object[json.keys_[i]] = convert(json.items_[i]);
                return object;
            }
        }
        return nullptr;
    }
    static std::string print(const Json& json, int indent) {
        return convert(json).dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    }
};

Json::Json() = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json::Json(std::nullptr_t) {}
Json::Json(const char* text) : kind_(Kind::string), text_(text) {}
Json::Json(std::string text) : kind_(Kind::string), text_(std::move(text)) {}
Json::Json(std::string_view text) : kind_(Kind::string), text_(text) {}

Json::Json(std::initializer_list<Json> items) : kind_(Kind::array) {
    const bool pairs = std::all_of(items.begin(), items.end(), [](const Json& item) {
        return item.kind_ == Kind::array && item.items_.size() == 2 && item.items_[0].is_string();
    });
    if (!pairs) {
        items_ = items;
        return;
    }
    kind_ = Kind::object;
    for (const Json& item : items) (*this)[item.items_[0].text_] = item.items_[1];
}

Json Json::object() {
    Json made;
    made.kind_ = Kind::object;
    return made;
}

Json Json::array() {
    Json made;
    made.kind_ = Kind::array;
    return made;
}

Json Json::array(std::initializer_list<Json> items) {
    Json made = array();
    made.items_ = items;
    return made;
}

Json Json::from_bool(bool value) {
    Json made;
    made.kind_ = Kind::boolean;
    made.boolean_ = value;
    return made;
}

Json Json::from_integer(int64_t value) {
    Json made;
    made.kind_ = Kind::integer;
    made.integer_ = value;
    return made;
}

Json Json::from_natural(uint64_t value) {
    Json made;
    made.kind_ = Kind::natural;
    made.natural_ = value;
    return made;
}

Json Json::from_real(double value) {
    Json made;
    made.kind_ = Kind::real;
    made.real_ = value;
    return made;
}

double Json::number() const {
    if (kind_ == Kind::integer) return static_cast<double>(integer_);
    if (kind_ == Kind::natural) return static_cast<double>(natural_);
    return kind_ == Kind::real ? real_ : 0;
}

Json& Json::operator[](std::string_view key) {
    if (kind_ == Kind::null) kind_ = Kind::object;
    STIPPLE_ASSERT(kind_ == Kind::object);
    for (size_t i = 0; i < keys_.size(); ++i)
        if (keys_[i] == key) return items_[i];
    keys_.emplace_back(key);
    return items_.emplace_back();
}

Json Json::value(std::string_view key) const {
    for (size_t i = 0; i < keys_.size(); ++i)
        if (keys_[i] == key) return items_[i];
    return {};
}

void Json::update(const Json& other) {
    for (size_t i = 0; i < other.keys_.size(); ++i) (*this)[other.keys_[i]] = other.items_[i];
}

void Json::push_back(Json item) {
    if (kind_ == Kind::null) kind_ = Kind::array;
    STIPPLE_ASSERT(kind_ == Kind::array);
    items_.push_back(std::move(item));
}

std::string Json::compact() const {
    return JsonPrinter::print(*this, -1);
}

std::string Json::pretty() const {
    return JsonPrinter::print(*this, 2) + "\n";
}

}  // namespace stipple
