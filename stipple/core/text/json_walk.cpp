#include "stipple/core/json_walk.h"

#include <fmt/core.h>

#include <limits>
#include <vector>

#include "stipple/core/json_events.h"

namespace stipple {
namespace {

class Walker : public JsonEvents {
public:
    Walker(const std::function<void(std::string_view, const JsonValue&)>& visit, int max_depth)
        : visit_(visit), max_depth_(static_cast<size_t>(max_depth)) {}

    bool null() override { return value({}); }
    bool boolean(bool b) override { return value({JsonValue::Kind::boolean, b, 0, {}}); }
    bool negative(int64_t n) override { return value({JsonValue::Kind::integer, n, static_cast<double>(n), {}}); }
    bool whole(uint64_t n) override {
        if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
            return value({JsonValue::Kind::number, 0, static_cast<double>(n), {}});
        return negative(static_cast<int64_t>(n));
    }
    bool real(double n) override { return value({JsonValue::Kind::number, 0, n, {}}); }
    bool string(std::string& text) override { return value({JsonValue::Kind::string, 0, 0, text}); }

    bool start_object() override { return open(false); }
    bool start_array() override { return !levels_.empty() && open(true); }  // the root is an object
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(std::string& name) override {
        path_.resize(levels_.back().prefix);
        path_ += name;
        return true;
    }
    bool error(size_t) override { return false; }

private:
    struct Level {
        size_t prefix;  // length of the path that all of the level's values share
        int64_t next;   // index in an array; -1 in an object
    };

    void count() {
        if (levels_.empty() || levels_.back().next < 0) return;
        path_.resize(levels_.back().prefix);
        path_ += fmt::format("{}", levels_.back().next++);
    }
    bool value(const JsonValue& value) {
        if (levels_.empty()) return false;
        count();
        visit_(path_, value);
        return true;
    }
    bool open(bool array) {
        if (levels_.size() == max_depth_) return false;
        count();
        if (!levels_.empty()) path_ += '/';
        levels_.push_back({path_.size(), array ? 0 : -1});
        return true;
    }
    bool close() {
        levels_.pop_back();
        return true;
    }

    const std::function<void(std::string_view, const JsonValue&)>& visit_;
    const size_t max_depth_;
    std::string path_;
    std::vector<Level> levels_;
};

}  // namespace

bool walk_json(std::string_view text, const std::function<void(std::string_view, const JsonValue&)>& visit,
               int max_depth) {
    // The parser takes a zero byte for the end of its input.
    if (text.find('\0') != std::string_view::npos) return false;
    Walker walker(visit, max_depth);
    return parse_json(text, walker);
}

bool is_json_object(std::string_view text) {
    return walk_json(text, [](std::string_view, const JsonValue&) {});
}

}  // namespace stipple
