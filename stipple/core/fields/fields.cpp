#include "stipple/core/fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/nearest_name.h"
#include "stipple/core/quoted.h"
#include "stipple/core/toml.h"

namespace stipple {
namespace {

bool is_whole(FieldType type) {
    return type == FieldType::int32 || type == FieldType::int64 || type == FieldType::uint64;
}
bool is_real(FieldType type) {
    return type == FieldType::float32 || type == FieldType::float64;
}
bool is_word(FieldType type) {
    return type == FieldType::word8 || type == FieldType::word32;
}

void* address_in(const Field& field, const void* object) {
    return field.address(const_cast<void*>(object));  // what is only read is not written through it
}

/// Calls visit(T*) with the type of one value of the field.
template <class Visit>
auto with_type(FieldType type, const Visit& visit) {
    switch (type) {
        case FieldType::boolean: return visit(static_cast<bool*>(nullptr));
        case FieldType::int32: return visit(static_cast<int32_t*>(nullptr));
        case FieldType::int64: return visit(static_cast<int64_t*>(nullptr));
        case FieldType::uint64: return visit(static_cast<uint64_t*>(nullptr));
        case FieldType::float32: return visit(static_cast<float*>(nullptr));
        case FieldType::float64: return visit(static_cast<double*>(nullptr));
        case FieldType::text: return visit(static_cast<std::string*>(nullptr));
        case FieldType::word8: return visit(static_cast<uint8_t*>(nullptr));
        case FieldType::word32: return visit(static_cast<int32_t*>(nullptr));
        case FieldType::object: break;
    }
    STIPPLE_ASSERT(false);
    return visit(static_cast<bool*>(nullptr));
}

[[noreturn]] void refuse(const Field& field, std::string_view spelled, const std::string& value) {
    throw Error(ErrorCode::bad_argument, fmt::format("{} must be {}, got {}", spelled, expectation(field), value));
}

/// Of a text that is no such value at all: which kind of number is wanted, and of which range.
[[noreturn]] void refuse_text(const Field& field, std::string_view spelled, const std::string& text) {
    const std::string wanted = expectation(field);
    const bool says_kind = !(is_whole(field.type) || is_real(field.type)) || wanted.starts_with("a ") || *field.zero;
    const char* kind = says_kind ? "" : is_whole(field.type) ? "a whole number, " : "a number, ";
    throw Error(ErrorCode::bad_argument,
                fmt::format("{} must be {}{}, got {}", spelled, kind, wanted, in_quotes(text)));
}

bool is_in_range(const Field& field, double value) {
    if (*field.zero && value == 0) return true;
    if (std::isnan(value) || (std::isinf(value) && !field.takes_infinity)) return false;
    return (field.excludes_least ? value > field.least : value >= field.least) &&
           (field.excludes_most ? value < field.most : value <= field.most);
}

/// One number, all of the text; a sign in front of it may be a plus.
template <class T>
bool parse(std::string_view text, T& value) {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

/// A whole number may be written as 1e6.
template <class T>
bool parse_whole(std::string_view text, T& value) {
    if (parse(text, value)) return true;
    double real = 0;
    if (text.find_first_of("eE") == std::string_view::npos || !parse(text, real)) return false;
    const auto most = static_cast<double>(std::numeric_limits<T>::max());
    if (std::abs(real) > std::min(9e15, most) || real != std::floor(real) || (std::is_unsigned_v<T> && real < 0))
        return false;
    value = static_cast<T>(real);
    return static_cast<double>(value) == real;
}

template <class T>
void read(const Field& field, const std::string& text, std::string_view spelled, T& to) {
    bool is_read = true;
    if constexpr (std::is_same_v<T, std::string>) {
        is_read = field.known.empty() || std::find(field.known.begin(), field.known.end(), text) != field.known.end();
        to = text;
    } else if constexpr (std::is_same_v<T, bool>) {
        is_read = text == "true" || text == "false";
        to = text == "true";
    } else {
        if (is_word(field.type)) {
            size_t word = 0;
            while (word < field.known.size() && text != field.known[word]) ++word;
            if (word == field.known.size()) refuse(field, spelled, in_quotes(text));
            to = static_cast<T>(word);
            return;
        }
        T value{};
        if (*field.zero && text == field.zero) {
            to = value;
            return;
        }
        if constexpr (std::is_floating_point_v<T>)
            is_read = parse(text, value);
        else
            is_read = parse_whole(text, value);
        if (is_read && !is_in_range(field, static_cast<double>(value))) refuse(field, spelled, text);
        if (is_read) to = value;
    }
    if (!is_read) refuse_text(field, spelled, text);
}

/// The shortest text that reads back as the same number, as in other files (io/text.h).
template <class T>
std::string shortest(T value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

template <class T>
std::string text_of(const Field& field, const T& value) {
    if constexpr (std::is_same_v<T, std::string>)
        return value;
    else if constexpr (std::is_same_v<T, bool>)
        return value ? "true" : "false";
    else if (!is_word(field.type))
        return *field.zero && value == T{} ? field.zero : shortest(value);
    else
        return field.known[static_cast<size_t>(value)];
}

template <class T>
Json json_of(const Field& field, const T& value) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
        if (is_word(field.type)) return Json(field.known[static_cast<size_t>(value)]);
    return Json(value);
}

/// Calls body(const T&) for each value of a member.
template <class Body>
void for_values(const Field& field, const void* member, const Body& body) {
    with_type(field.type, [&](auto* typed) {
        using T = std::remove_pointer_t<decltype(typed)>;
        const T* values = static_cast<const T*>(member);
        if (field.count == FieldCount::optional)
            values = static_cast<const T*>(field.held(const_cast<void*>(member), false));
        if (field.count == FieldCount::vector) {
            for (const auto& value : *static_cast<const std::vector<T>*>(member)) body(value);
        } else {
            for (int i = 0; values && i < field.size; ++i) body(values[i]);
        }
    });
}

Json values_json(const Field& field, const void* member) {
    std::vector<Json> values;
    for_values(field, member, [&](const auto& value) { values.push_back(json_of(field, value)); });
    const bool is_optional = field.count == FieldCount::optional;
    if (is_optional && values.empty()) return {};
    if (field.count == FieldCount::one || (is_optional && field.size == 1)) return values.front();
    Json list = Json::array();
    const size_t columns = std::max<size_t>(1, static_cast<size_t>(field.columns));
    for (size_t i = 0; i < values.size(); i += columns) {
        Json row = Json::array();
        for (size_t j = i; j < i + columns; ++j) row.push_back(values[j]);
        list.push_back(field.columns > 0 ? row : values[i]);
    }
    return list;
}

bool is_among(std::string_view word, std::string_view words) {
    for (size_t at = 0; at <= words.size();) {
        const size_t end = std::min(words.find('|', at), words.size());
        if (words.substr(at, end - at) == word) return true;
        at = end + 1;
    }
    return false;
}

/// Refuses a value that was given where the word beside it makes it count for nothing.
void check_chosen(const Fields& fields, const Field& field, const void* object, std::string (*spell)(const Field&),
                  const std::string& above) {
    const auto chooser = std::find_if(fields.begin(), fields.end(), [&](const Field& other) {
        return std::string_view(other.name) == field.chooser;
    });
    STIPPLE_ASSERT(chooser != fields.end() && field.defaults);
    if (texts_of(field, object) == texts_of(field, field.defaults())) return;
    if (is_among(texts_of(*chooser, object).front(), field.choices)) return;
    std::string words = field.choices;
    for (size_t at = 0; (at = words.find('|', at)) != std::string::npos; at += 2) words.replace(at, 1, ", ");
    const auto spelled = [&](const Field& one) { return spell ? spell(one) : above + one.name; };
    throw Error(ErrorCode::bad_argument, fmt::format("{} is for {} {}", spelled(field), spelled(*chooser), words));
}

/// `above` is what stands before the names in keys: "", "optimizer.".
void check_table(const Fields& fields, const void* object, std::string (*spell)(const Field&), const std::string& above,
                 const std::function<bool(const Field&, const void*)>& leaves_out) {
    for (const Field& field : fields) {
        if (field.compute || (leaves_out && leaves_out(field, object))) continue;
        const void* member = address_in(field, object);
        if (*field.chooser) check_chosen(fields, field, object, spell, above);
        if (field.nested) {
            if (field.count == FieldCount::one && member)
                check_table(field.nested(), member, spell, *field.name ? above + field.name + "." : above, leaves_out);
            continue;
        }
        if (!is_whole(field.type) && !is_real(field.type)) continue;
        for_values(field, member, [&](const auto& value) {
            if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
                if (!is_in_range(field, static_cast<double>(value)))
                    refuse(field, spell ? spell(field) : above + field.name, fmt::format("{}", value));
        });
    }
}

/// Calls visit(key, field, object) for all fields; without an object, with null.
template <class Visit>
void for_keys(const Fields& fields, const void* object, const std::string& above, const Visit& visit) {
    for (const Field& field : fields) {
        const std::string name = above + field.name;
        if (field.compute) continue;
        if (!field.nested)
            visit(name, field, object);
        else
            for_keys(field.nested(), object ? address_in(field, object) : nullptr, *field.name ? name + "." : above,
                     visit);
    }
}

std::string toml_value(const Field& field, const void* object) {
    std::vector<std::string> values = texts_of(field, object);
    for (std::string& value : values)
        if (field.type == FieldType::text || is_word(field.type) || (*field.zero && value == field.zero))
            value = toml_string(value);
    if (field.count == FieldCount::optional && values.empty()) return "";
    const bool is_one = field.count == FieldCount::one || (field.count == FieldCount::optional && field.size == 1);
    return is_one ? values.front() : fmt::format("[{}]", fmt::join(values, ", "));
}

void write_toml(const Fields& fields, const void* object, const std::string& table, std::string& text) {
    const auto write_own = [&](const auto& self, const Fields& of, const void* at) -> void {
        for (const Field& field : of) {
            if (field.nested && !*field.name) self(self, field.nested(), address_in(field, at));
            if (field.nested || field.compute) continue;
            if (const std::string value = toml_value(field, at); !value.empty())
                text += fmt::format("{} = {}\n", field.name, value);
        }
    };
    write_own(write_own, fields, object);
    for (const Field& field : fields)
        if (field.nested && *field.name) {
            const std::string name = table.empty() ? field.name : table + "." + field.name;
            text += fmt::format("\n[{}]\n", name);
            write_toml(field.nested(), address_in(field, object), name, text);
        }
}

}  // namespace

std::string expectation(const Field& field) {
    if (field.type == FieldType::boolean) return "true or false";
    if (!field.known.empty()) return fmt::format("one of {}", fmt::join(field.known, ", "));
    if (field.type == FieldType::text) return "a text";
    const bool has_least = std::isfinite(field.least), has_most = std::isfinite(field.most);
    const char* what = is_whole(field.type) ? "a whole number" : "a number";
    const std::string from = !has_least             ? ""
                             : field.excludes_least ? fmt::format("above {}", field.least)
                                                    : fmt::format("from {}", field.least);
    const std::string or_word = *field.zero ? fmt::format("{} or ", field.zero) : "";
    if (!has_most) return or_word + (has_least ? from : what);
    if (field.excludes_most) return fmt::format("{}{}below {}", from, has_least ? ", " : "", field.most);
    if (!has_least) return fmt::format("at most {}", field.most);
    return field.excludes_least ? fmt::format("{}, to {}", from, field.most)
                                : fmt::format("{} to {}", field.least, field.most);
}

void set_field(const Field& field, void* object, std::span<const std::string> values, std::string_view spelled) {
    STIPPLE_ASSERT(!field.nested && !field.compute);
    const auto wanted = static_cast<size_t>(field.size);
    if (field.count != FieldCount::vector && values.size() != wanted)
        throw Error(ErrorCode::bad_argument,
                    fmt::format("{} must be {}, got {} values", spelled,
                                wanted == 1 ? "one value" : fmt::format("{} values", wanted), values.size()));
    void* member = field.address(object);
    with_type(field.type, [&](auto* typed) {
        using T = std::remove_pointer_t<decltype(typed)>;
        std::vector<T> read_values;
        for (const std::string& text : values) {
            T value{};
            read(field, text, spelled, value);
            read_values.push_back(std::move(value));
        }
        if (field.count == FieldCount::vector) {
            *static_cast<std::vector<T>*>(member) = std::move(read_values);
        } else {
            T* to = static_cast<T*>(field.count == FieldCount::optional ? field.held(member, true) : member);
            for (size_t i = 0; i < read_values.size(); ++i) to[i] = read_values[i];
        }
    });
}

std::vector<std::string> texts_of(const Field& field, const void* object) {
    std::vector<std::string> texts;
    for_values(field, address_in(field, object), [&](const auto& value) { texts.push_back(text_of(field, value)); });
    return texts;
}

void check_fields(const Fields& fields, const void* object, std::string (*spell)(const Field&),
                  const std::function<bool(const Field&, const void*)>& leaves_out) {
    check_table(fields, object, spell, "", leaves_out);
}

std::string as_option(const Field& field) {
    std::string name = std::string("--") + field.name;
    for (char& c : name)
        if (c == '_') c = '-';
    return name;
}

std::pair<const Field*, void*> find_field(const Fields& fields, void* object, std::string_view key) {
    for (const Field& field : fields) {
        const std::string_view name = field.name;
        if (field.compute) continue;
        if (!field.nested) {
            if (name == key) return {&field, object};
            continue;
        }
        std::string_view rest = key;
        if (!name.empty()) {
            if (!key.starts_with(name) || key.size() <= name.size() || key[name.size()] != '.') continue;
            rest.remove_prefix(name.size() + 1);
        }
        if (const auto found = find_field(field.nested(), field.address(object), rest); found.first) return found;
    }
    return {nullptr, nullptr};
}

void set_by_key(const Fields& fields, void* object, std::string_view key, std::span<const std::string> values) {
    if (const auto [field, of] = find_field(fields, object, key); field) return set_field(*field, of, values, key);
    const std::string near = nearest_name(std::string(key), keys_of(fields));
    throw Error(ErrorCode::bad_argument, fmt::format("there is no key {}", in_quotes(key)),
                near.empty() ? "" : fmt::format("did you mean {}?", near));
}

std::vector<std::string> keys_of(const Fields& fields) {
    std::vector<std::string> keys;
    for_keys(fields, nullptr, "", [&](const std::string& key, const Field&, const void*) { keys.push_back(key); });
    return keys;
}

std::vector<std::pair<std::string, std::string>> values_of(const Fields& fields, const void* object) {
    std::vector<std::pair<std::string, std::string>> values;
    for_keys(fields, object, "", [&](const std::string& key, const Field& field, const void* of) {
        if (std::string value = toml_value(field, of); !value.empty()) values.emplace_back(key, std::move(value));
    });
    return values;
}

std::string to_toml(const Fields& fields, const void* object) {
    std::string text;
    write_toml(fields, object, "", text);
    return text;
}

Json to_json(const Fields& fields, const void* object) {
    Json made = Json::object();
    for (const Field& field : fields) {
        if (field.compute) {
            made[field.name] = field.compute(object);
            continue;
        }
        void* member = address_in(field, object);
        if (!field.nested) {
            made[field.name] = values_json(field, member);
        } else if (field.count == FieldCount::vector) {
            Json list = Json::array();
            for (int64_t i = 0; i < field.length(object); ++i)
                list.push_back(to_json(field.nested(), field.element(const_cast<void*>(object), i)));
            made[field.name] = std::move(list);
        } else if (!member) {
            made[field.name] = Json();
        } else if (*field.name) {
            made[field.name] = to_json(field.nested(), member);
        } else {
            made.update(to_json(field.nested(), member));
        }
    }
    return made;
}

}  // namespace stipple
