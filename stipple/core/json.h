#pragma once
// A JSON value that is filled piece by piece and printed: what commands report. nlohmann's value costs more than a
// second of compilation in every file that fills one; here it is seen by json.cpp alone, which prints with it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace stipple {

/// Null, a truth value, a number, a string, an array, or an object with its keys in the order they came. Braces make an
/// object of pairs that begin with a string, {{"path", path}, {"points", 12}}, and an array of anything else.
class Json {
public:
    enum class Kind : uint8_t { null, boolean, integer, natural, real, string, array, object };

    Json();
    Json(const Json&);
    Json(Json&&) noexcept;
    Json& operator=(const Json&);
    Json& operator=(Json&&) noexcept;
    ~Json();

    Json(std::nullptr_t);
    Json(const char* text);
    Json(std::string text);
    Json(std::string_view text);
    Json(std::initializer_list<Json> items);
    template <std::same_as<bool> T>  // nothing else becomes one: a pointer would
    Json(T value) : Json(from_bool(value)) {}
    template <std::integral T>
    requires(!std::same_as<T, bool>) Json(T value)
        : Json(std::signed_integral<T> ? from_integer(value) : from_natural(value)) {}
    template <std::floating_point T>
    Json(T value) : Json(from_real(value)) {}
    template <class Range>  // an array; an object of a map
    requires(requires(const Range& range) {
        typename Range::value_type;
        range.begin();
    } && !std::convertible_to<const Range&, std::string_view>) Json(const Range& range)
        : Json(of_range(range)) {}

    static Json object();
    static Json array();
    static Json array(std::initializer_list<Json> items);

    Kind kind() const { return kind_; }
    bool is_null() const { return kind_ == Kind::null; }
    bool is_string() const { return kind_ == Kind::string; }
    bool is_number() const { return kind_ >= Kind::integer && kind_ <= Kind::real; }
    bool is_real() const { return kind_ == Kind::real; }
    /// Of a string.
    const std::string& text() const { return text_; }
    /// Of a number.
    double number() const;
    /// Elements of an array, values of an object.
    const std::vector<Json>& items() const { return items_; }

    /// The value of a key, a new null where there is none; null becomes an object.
    Json& operator[](std::string_view key);
    /// The value of a key, null where there is none.
    Json value(std::string_view key) const;
    /// Sets the keys of another object; those that are there keep their place.
    void update(const Json& other);
    /// Null becomes an array.
    void push_back(Json item);

    /// On one line, as short as reads back; numbers that are not finite are null.
    std::string compact() const;
    /// Indented by two, with a line end; bytes that are not UTF-8 become U+FFFD.
    std::string pretty() const;

private:
    static Json from_bool(bool value);
    static Json from_integer(int64_t value);
    static Json from_natural(uint64_t value);
    static Json from_real(double value);
    template <class Range>
    static Json of_range(const Range& range) {
        if constexpr (requires { typename Range::mapped_type; }) {
            Json made = object();
            for (const auto& [key, item] : range) made[key] = item;
            return made;
        } else {
            Json made = array();
            for (const auto& item : range) made.push_back(item);
            return made;
        }
    }

    Kind kind_ = Kind::null;
    union {
        bool boolean_;
        int64_t integer_;
        uint64_t natural_;
        double real_ = 0;
    };
    std::string text_;
    std::vector<std::string> keys_;  // of an object, one for each item
    std::vector<Json> items_;

    friend struct JsonPrinter;
};

}  // namespace stipple
