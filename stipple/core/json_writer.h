#pragma once
// JSON text piece by piece, keys in the order in which they are written, no white space.
//
//   JsonWriter json;
//   json.begin_object().field("name", "conv1").key("shape").begin_array().value(64).value(3).end_array().end_object();
//   json.text();  // {"name":"conv1","shape":[64,3]}

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace stipple {

class JsonWriter {
public:
    JsonWriter& begin_object() { return open('{'); }
    JsonWriter& end_object() { return close('}'); }
    JsonWriter& begin_array() { return open('['); }
    JsonWriter& end_array() { return close(']'); }
    /// Throws Error{bad_argument} when it is not UTF-8, as value() does.
    JsonWriter& key(std::string_view name);

    JsonWriter& value(std::string_view text);
    JsonWriter& value(const char* text) { return value(std::string_view(text)); }
    JsonWriter& value(bool truth) { return put(truth ? "true" : "false"); }
    /// The shortest text that reads back as the same; with a point or an exponent. Throws Error{bad_argument} for one
    /// that is not finite.
    JsonWriter& value(double number);
    JsonWriter& value(std::integral auto number) { return put(std::to_string(number)); }

    template <class T>
    JsonWriter& field(std::string_view name, const T& content) {
        return key(name).value(content);
    }

    const std::string& text() const { return text_; }

private:
    JsonWriter& put(std::string_view piece);
    JsonWriter& open(char bracket);
    JsonWriter& close(char bracket);

    std::string text_;
    bool needs_comma_ = false;
};

}  // namespace stipple
