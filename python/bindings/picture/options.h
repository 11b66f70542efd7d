#pragma once
// Options of pictures, given as keywords or as a dict: many structs of many fields, each with a default of its own.

#include <fmt/format.h>

#include <optional>
#include <string>

#include "python/bindings/common/call.h"
#include "stipple/picture/color_map.h"

namespace stipple::python {

/// Takes options by name; end() refuses what is left.
class Options {
public:
    Options(const py::object& options, const char* name) : left_(py::dict(options).attr("copy")()), name_(name) {}

    /// Null where it is not given, or None.
    py::object take(const char* key) {
        known_.emplace_back(key);
        if (!left_.contains(key)) return {};
        py::object value = left_[key];
        PyDict_DelItemString(left_.ptr(), key);
        return value.is_none() ? py::object() : value;
    }
    template <class Value>
    void set(const char* key, Value& to) {
        if (const py::object value = take(key); value) to = cast<Value>(value, key);
    }
    template <class Value>
    void set(const char* key, std::optional<Value>& to) {
        if (const py::object value = take(key); value) to = cast<Value>(value, key);
    }
    template <class Value, size_t N>
    void set_word(const char* key, Value& to, const Word<Value> (&words)[N]) {
        if (const py::object value = take(key); value) to = choice(cast<std::string>(value, key), key, words);
    }
    /// "#rrggbb", or three whole numbers from 0 to 255.
    template <class Color>
    void set_color(const char* key, Color& to) {
        const py::object value = take(key);
        if (!value) return;
        if (PyUnicode_Check(value.ptr())) {
            to = picture::parse_color(value.cast<std::string>());
            return;
        }
        const std::vector<int64_t> parts = whole_numbers(value, key);
        for (int64_t part : parts) STIPPLE_REQUIRE(part >= 0 && part <= 255, "{}: {}; wanted is 0 to 255", key, part);
        STIPPLE_REQUIRE(parts.size() == 3, "{}: wanted is \"#rrggbb\" or three numbers", key);
        to = picture::Rgb{static_cast<uint8_t>(parts[0]), static_cast<uint8_t>(parts[1]),
                          static_cast<uint8_t>(parts[2])};
    }
    void end() const {
        for (const auto& [key, value] : left_) {
            std::string known;
            for (const std::string& each : known_) known += (known.empty() ? "" : ", ") + each;
            throw py::type_error(fmt::format("{}: no \"{}\"; there are {}", name_, py::cast<std::string>(key), known));
        }
    }

private:
    template <class Value>
    static Value cast(const py::object& value, const char* key) {
        try {
            return value.cast<Value>();
        } catch (const py::cast_error&) {
            throw py::type_error(fmt::format("{}: {} does not fit", key, type_name(value)));
        }
    }

    py::dict left_;
    const char* name_;
    std::vector<std::string> known_;
};

}  // namespace stipple::python
