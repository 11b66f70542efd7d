#pragma once
// JSON read as a sequence of values with their paths, without a tree in memory. json_reader.h takes them by type,
// json_writer.h writes them.
//
// For files of ours (manifests, metrics) whose fields are known. Bounded in depth, and safe when memory runs out: a
// tree of the JSON library allocates in its destructor and then ends the program.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "stipple/core/json_events.h"

namespace stipple {

struct JsonValue {
    enum class Kind { null, boolean, integer, number, string };
    Kind kind = Kind::null;
    int64_t integer = 0;    // integer, boolean; an integer beyond int64 is a number
    double number = 0;      // number, integer
    std::string_view text;  // string; valid during the call
};

/// Calls visit for every null, boolean, number and string, in their order, with the keys and indices that lead there
/// joined by '/': "files/0/bytes". Returns false when the text is not one JSON object in UTF-8 or is nested deeper than
/// max_depth (1: values alone, no object or list in it); visit may have been called before that shows. What visit
/// throws comes through.
bool walk_json(std::string_view text, const std::function<void(std::string_view path, const JsonValue&)>& visit,
               int max_depth = 32);

/// The text is one JSON object that walk_json accepts.
bool is_json_object(std::string_view text);

}  // namespace stipple
