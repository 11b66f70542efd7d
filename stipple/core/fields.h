#pragma once
// Fields: the members of an options or result struct, described once. Command lines, configuration files, recipes,
// JSON, tables and bindings read the description; none of them repeats a name, a range or a word.
//
//   struct CropOptions { double radius = 0; Side side = Side::inside; };
//   const Fields& crop_fields() {
//       static const Fields fields = {
//           field<&CropOptions::radius>("radius", "Points so near the middle").unit("unit of the cloud").from(0),
//           field<&CropOptions::side>("side", "Which points stay").words(kSideWords)};
//       return fields;
//   }
//
// A table is plain data: a field knows the type of its member and how to find it in an object, so that what reads
// tables is compiled once and not for each struct.

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stipple/core/json.h"

namespace stipple {

struct Field;
/// In the order in which help, files and JSON show them.
using Fields = std::vector<Field>;

/// The type of a member, or of the elements of an array or a vector. Enumerations are words: their values count from 0.
enum class FieldType : uint8_t { boolean, int32, int64, uint64, float32, float64, text, word8, word32, object };
/// How many values a member holds.
enum class FieldCount : uint8_t {
    one,
    array,     // std::array: exactly Field::size of them
    vector,    // std::vector: any number
    optional,  // std::optional: exactly Field::size of them, or none
};

struct Field {
    const char* name = "";  // with underscores; "" of an object whose fields count as those of the struct around it
    const char* help = "";  // one line
    FieldType type = FieldType::boolean;
    FieldCount count = FieldCount::one;
    int size = 1;                                           // of an array, or of an optional one
    int columns = 0;                                        // of an array of arrays, a matrix: values in a row
    void* (*address)(void* object) = nullptr;               // of the member; null for a missing optional object
    void* (*held)(void* member, bool makes_one) = nullptr;  // of an optional: its first value, or null
    const Fields& (*nested)() = nullptr;                    // of an object: its fields
    Json (*compute)(const void*) = nullptr;                 // of a result that is no member: its value
    const void* (*defaults)() = nullptr;                    // a struct as it is made: what was not given
    int64_t (*length)(const void*) = nullptr;               // of a vector of objects
    void* (*element)(void*, int64_t) = nullptr;

    double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
    bool excludes_least = false, excludes_most = false, takes_infinity = false;
    std::span<const char* const> known = {};  // the words of an enumeration, or those that a text may be
    const char* measure = "";                 // the unit
    const char* placeholder = "";             // what a help shows in place of a value: "R"
    bool shows_default = true;
    const char* zero = "";                    // the word for 0: "auto"
    char letter = 0;                          // of a command line: -n
    const char *chooser = "", *choices = "";  // the field that decides whether this one counts, and for which words

    // ---- Description, to be chained
    Field& unit(const char* words) { return measure = words, *this; }
    Field& shown(const char* value) { return placeholder = value, *this; }
    /// 0 is read and shown as this word, and is allowed whatever the range.
    Field& zero_word(const char* word) { return zero = word, *this; }
    Field& short_name(char one) { return letter = one, *this; }
    /// The default means that nothing was given: the help does not show it.
    Field& no_default() { return shows_default = false, *this; }
    Field& from(double lowest) { return least = lowest, *this; }
    Field& above(double bound) { return least = bound, excludes_least = true, *this; }
    Field& to(double highest) { return most = highest, *this; }
    Field& below(double bound) { return most = bound, excludes_most = true, *this; }
    Field& between(double lowest, double highest) { return from(lowest).to(highest); }
    /// Another value than the default makes sense only where the field `other` is one of these words: "fps|random".
    Field& only_with(const char* other, const char* words) { return chooser = other, choices = words, *this; }
    Field& may_be_infinite() { return takes_infinity = true, *this; }
    Field& words(std::span<const char* const> names) { return known = names, *this; }
};

// ---- Declaration

namespace fields {  // how field() finds out what it needs of a member

template <class T>
struct Kind {
    static_assert(std::is_enum_v<T> || std::is_class_v<T>, "no field can have this type");
    using Value = T;
    static constexpr FieldType type = !std::is_enum_v<T> ? FieldType::object
                                      : sizeof(T) == 1   ? FieldType::word8
                                                         : FieldType::word32;
    static constexpr FieldCount count = FieldCount::one;
    static constexpr int size = 1, columns = 0;
};
template <class T, FieldType kType>
struct Scalar {
    using Value = T;
    static constexpr FieldType type = kType;
    static constexpr FieldCount count = FieldCount::one;
    static constexpr int size = 1, columns = 0;
};
template <>
struct Kind<bool> : Scalar<bool, FieldType::boolean> {};
template <>
struct Kind<int32_t> : Scalar<int32_t, FieldType::int32> {};
template <>
struct Kind<int64_t> : Scalar<int64_t, FieldType::int64> {};
template <>
struct Kind<uint64_t> : Scalar<uint64_t, FieldType::uint64> {};
template <>
struct Kind<float> : Scalar<float, FieldType::float32> {};
template <>
struct Kind<double> : Scalar<double, FieldType::float64> {};
template <>
struct Kind<std::string> : Scalar<std::string, FieldType::text> {};
template <class T>
struct Kind<std::vector<T>> : Kind<T> {
    static constexpr FieldCount count = FieldCount::vector;
};
template <class T, size_t N>
struct Kind<std::array<T, N>> : Kind<T> {
    static constexpr FieldCount count = FieldCount::array;
    static constexpr int size = static_cast<int>(N);
};
template <class T, size_t N, size_t M>
struct Kind<std::array<std::array<T, M>, N>> : Kind<T> {
    static constexpr FieldCount count = FieldCount::array;
    static constexpr int size = static_cast<int>(N * M), columns = static_cast<int>(M);
};
template <class T>
struct Kind<std::optional<T>> : Kind<T> {
    static constexpr FieldCount count = FieldCount::optional;
};
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// Returns a struct as it is before anything is set.
template <class Struct>
const void* defaults_of() {
    static const Struct made{};
    return &made;
}

template <class Pointer>
struct Member;
template <class Struct, class T>
struct Member<T Struct::*> {
    using Of = Struct;
    using Type = T;
};

template <auto kFirst, auto... kRest>
auto& member_of(typename Member<decltype(kFirst)>::Of& object) {
    if constexpr (sizeof...(kRest) == 0)
        return object.*kFirst;
    else
        return member_of<kRest...>(object.*kFirst);
}

}  // namespace fields

/// Describes a member: field<&Options::ratio>(...), or one of a member: field<&Options::icp, &IcpOptions::trim>(...).
template <auto kFirst, auto... kRest>
Field field(const char* name, const char* help) {
    using Struct = typename fields::Member<decltype(kFirst)>::Of;
    using Type = std::remove_reference_t<decltype(fields::member_of<kFirst, kRest...>(std::declval<Struct&>()))>;
    using Kind = fields::Kind<Type>;
    static_assert(Kind::type != FieldType::object, "a member with fields of its own: object_field, objects_field");
    Field made{.name = name,
               .help = help,
               .type = Kind::type,
               .count = Kind::count,
               .size = Kind::size,
               .columns = Kind::columns};
    made.address = [](void* object) -> void* {
        return &fields::member_of<kFirst, kRest...>(*static_cast<Struct*>(object));
    };
    if constexpr (std::is_default_constructible_v<Struct>) made.defaults = fields::defaults_of<Struct>;
    if constexpr (fields::kIsOptional<Type>)
        made.held = [](void* member, bool makes_one) -> void* {
            Type& optional = *static_cast<Type*>(member);
            if (makes_one && !optional) optional.emplace();
            return optional ? &*optional : nullptr;
        };
    return made;
}

/// Describes a member that is a struct with fields of its own; without a name they count as fields of this struct. In
/// results it may be a std::optional with a name.
template <auto kFirst, auto... kRest>
Field object_field(const char* name, const Fields& (*nested)(), const char* help = "") {
    using Struct = typename fields::Member<decltype(kFirst)>::Of;
    Field made{.name = name, .help = help, .type = FieldType::object};
    made.nested = nested;
    made.address = [](void* object) -> void* {
        auto& member = fields::member_of<kFirst, kRest...>(*static_cast<Struct*>(object));
        if constexpr (fields::kIsOptional<std::remove_reference_t<decltype(member)>>)
            return member ? &*member : nullptr;
        else
            return &member;
    };
    return made;
}

/// Describes a vector of structs with fields of their own. Results have such members, options do not.
template <auto kMember>
Field objects_field(const char* name, const Fields& (*nested)(), const char* help = "") {
    using Struct = typename fields::Member<decltype(kMember)>::Of;
    using Vector = typename fields::Member<decltype(kMember)>::Type;
    Field made = object_field<kMember>(name, nested, help);
    made.count = FieldCount::vector;
    made.length = [](const void* object) -> int64_t {
        return static_cast<int64_t>((static_cast<const Struct*>(object)->*kMember).size());
    };
    made.element = [](void* object, int64_t i) -> void* {
        return &static_cast<Vector&>(static_cast<Struct*>(object)->*kMember)[static_cast<size_t>(i)];
    };
    return made;
}

/// Describes what follows from a result: computed_field<Found>("degrees", "The angle", [](const Found& found) { ... }).
/// JSON and tables show it; it cannot be set.
template <class Struct, class Compute>
Field computed_field(const char* name, const char* help, Compute) {
    Field made{.name = name, .help = help};
    made.compute = [](const void* object) -> Json { return Compute{}(*static_cast<const Struct*>(object)); };
    return made;
}

// ---- Use: `object` is of the struct that the fields describe

/// Says what a value must be, for messages: "a number", "1 to 16", "above 0", "true or false", "one of keep, fill".
std::string expectation(const Field& field);

/// Sets a member from texts, as they stand in a command line or in a file. `spelled` is how the caller names the field:
/// "--hole-size", "patch.scans". Throws Error{bad_argument}: "--ratio must be a number above 0, got x".
void set_field(const Field& field, void* object, std::span<const std::string> values, std::string_view spelled);

/// The values of a member as texts that set_field() reads back; none of a missing optional.
std::vector<std::string> texts_of(const Field& field, const void* object);

/// Throws Error{bad_argument} for the first member out of its range, as set_field() does, and for the first that makes
/// no sense beside another (only_with): "--start is for --method fps". `spell` makes the name of a field in a message;
/// without it the name is the key that set_by_key() takes: "optimizer.kind".
/// Fields of which leaves_out(field, struct that it is in) says so are not looked at.
void check_fields(const Fields& fields, const void* object, std::string (*spell)(const Field&) = nullptr,
                  const std::function<bool(const Field&, const void*)>& leaves_out = {});
/// "--hole-size"
std::string as_option(const Field& field);

/// The field of a key, and the struct that it is in, `object` or one within; null where there is none. Keys of nested
/// structs have dots: "optimizer.kind".
std::pair<const Field*, void*> find_field(const Fields& fields, void* object, std::string_view key);
/// Sets the member with this key. Throws Error{bad_argument} for an
/// unknown key, with the nearest one as its hint, and as set_field() does.
void set_by_key(const Fields& fields, void* object, std::string_view key, std::span<const std::string> values);
/// The keys of all fields, in order.
std::vector<std::string> keys_of(const Fields& fields);
/// The keys of all fields, in order, with their values as TOML writes them; none of a missing optional.
std::vector<std::pair<std::string, std::string>> values_of(const Fields& fields, const void* object);

/// "key = value" lines, and a table for each nested struct; parse_toml() and set_by_key() read them back.
std::string to_toml(const Fields& fields, const void* object);

/// An object of all members and of what is computed of them. Numbers that are not finite and missing optionals are
/// null.
Json to_json(const Fields& fields, const void* object);

}  // namespace stipple
