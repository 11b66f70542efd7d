#pragma once
// The part of TOML that configuration files need: tables of keys, each with a string, a number, a boolean or an array
// of those. Repeated keys are errors: either of them would lose what a user wrote.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stipple {

struct TomlItem {
    std::string table;  // empty before the first table; "a.b" for a table in a table
    std::string key;
    std::vector<std::string> values;  // one, or the elements of an array; strings without their quotes
    int64_t line = 0;
};

/// Keys in the order of the file, and one item without a key for each table. Throws Error{bad_config} with the line for
/// what is no TOML, for what is not supported (dates, keys with dots, multi-line strings), and for repeated keys.
std::vector<TomlItem> parse_toml(std::string_view text);

/// A string in quotes that parse_toml reads back.
std::string toml_string(std::string_view text);

}  // namespace stipple
