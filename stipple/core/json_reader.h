#pragma once
// JSON of files of ours, read with every key, type and order checked: one value at a time (json_walk.h), each taken by
// its type. A mistake is an Error{bad_file} that names the file's part and the place:
//
//   the plan: "steps/3/output" must be a whole number
//
//   read_json("the calibration", text, [&](JsonField& field) {
//       const std::string_view key = field.word();
//       if (key == "clouds")
//           field.take(clouds);
//       else if (key == "layers")  // a list of objects
//           read_layer(field, field.element(layers));
//       else
//           field.fail("is not known");
//   });

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stipple/core/json_walk.h"

namespace stipple {

class JsonField {
public:
    JsonField(std::string_view what, std::string_view path, const JsonValue& value)
        : what_(what), path_(path), rest_(path), value_(value) {}

    /// The next key or index on the way to the value; empty at the end of the way.
    std::string_view word();
    /// The last key or index, all before it joined by '/' in `before`: for keys that are names and may hold a '/'.
    std::string_view last_word(std::string_view& before);

    /// The element of a list that the next word counts: its last one, or one more. Fails for any other index, and when
    /// no key follows: a list of bare values is no list of objects.
    template <class T>
    T& element(std::vector<T>& list) {
        if (is_next_element(list.size())) return list.emplace_back();
        return list.back();
    }

    /// The value, which must be at the end of the way and of that type. float: finite in float32. The position of a
    /// text among words.
    void take(std::string& to) const;
    void take(int32_t& to) const;
    void take(int64_t& to) const;
    void take(float& to) const;
    void take(double& to) const;
    void take(bool& to) const;
    bool is_text() const { return value_.kind == JsonValue::Kind::string; }  // for keys that are text or a number
    size_t take_word(std::span<const std::string_view> words) const;

    /// Throws Error{bad_file}: what is read, the path, and this.
    [[noreturn]] void fail(std::string_view reason) const;

private:
    void require_leaf() const;
    bool is_next_element(size_t size);
    int64_t whole_number(int64_t least, int64_t most) const;

    std::string_view what_, path_, rest_;
    const JsonValue& value_;
};

/// Calls visit for every value of one JSON object, in their order. `what` begins every message: "the plan". Throws
/// Error{bad_file} when the text is none; visit may have been called before that shows.
void read_json(std::string_view what, std::string_view text, const std::function<void(JsonField&)>& visit);

}  // namespace stipple
