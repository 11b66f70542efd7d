#pragma once
// A trace of core/profile.h, read back.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "stipple/core/json_walk.h"

namespace stipple::test {

struct TraceEvent {
    std::string phase, name, category, path;
    double begin = -1, duration = -1;  // microseconds
    int64_t process = 0, thread = 0, bytes = 0;
};

/// All events in order; a failed test when the text is no JSON object.
inline std::vector<TraceEvent> read_trace(const std::string& text) {
    std::vector<TraceEvent> events;
    const bool is_json = walk_json(text, [&](std::string_view path, const JsonValue& value) {
        const std::string_view prefix = "traceEvents/";
        if (path.substr(0, prefix.size()) != prefix) return;
        path.remove_prefix(prefix.size());
        const size_t slash = path.find('/');
        const auto index = static_cast<size_t>(std::stoll(std::string(path.substr(0, slash))));
        if (events.size() <= index) events.resize(index + 1);
        TraceEvent& event = events[index];
        const std::string_view key = path.substr(slash + 1);
        if (key == "ph") event.phase = value.text;
        if (key == "name") event.name = value.text;
        if (key == "cat") event.category = value.text;
        if (key == "ts") event.begin = value.number;
        if (key == "dur") event.duration = value.number;
        if (key == "pid") event.process = value.integer;
        if (key == "tid") event.thread = value.integer;
        if (key == "args/path" || key == "args/name") event.path = value.text;
        if (key == "args/bytes") event.bytes = value.integer;
    });
    EXPECT_TRUE(is_json) << text.substr(0, 400);
    return events;
}

/// Those with a duration.
inline std::vector<TraceEvent> spans_of(const std::string& text) {
    std::vector<TraceEvent> spans;
    for (TraceEvent& event : read_trace(text))
        if (event.phase == "X") spans.push_back(std::move(event));
    return spans;
}

}  // namespace stipple::test
