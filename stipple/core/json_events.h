#pragma once
// JSON read event by event: hostile text never becomes a tree in memory, and what reads it does not include the JSON
// library, which is slow to compile. walk_json() in json_walk.h is simpler where paths and values are enough.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stipple {

/// What parse_json() calls, in the order of the text. False ends the parsing; what is thrown comes through. Text may be
/// moved away.
class JsonEvents {
public:
    virtual ~JsonEvents() = default;
    virtual bool null() = 0;
    virtual bool boolean(bool value) = 0;
    virtual bool negative(int64_t value) = 0;  // whole numbers below 0
    virtual bool whole(uint64_t value) = 0;    // and from 0
    virtual bool real(double value) = 0;       // and all others, those beyond 64 bits too
    virtual bool string(std::string& text) = 0;
    virtual bool start_object() = 0;
    virtual bool key(std::string& name) = 0;
    virtual bool end_object() = 0;
    virtual bool start_array() = 0;
    virtual bool end_array() = 0;
    /// The text is not JSON in UTF-8; `position` bytes were read, the offending one included.
    virtual bool error(size_t position) = 0;
};

/// Returns whether the text was read to its end. A zero byte ends it: callers look for one before.
bool parse_json(std::string_view text, JsonEvents& events);

/// Text as a JSON string with its quotes. Throws Error{bad_argument} when it is not UTF-8.
std::string json_string(std::string_view text);

}  // namespace stipple
