#include "stipple/core/failpoint.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "stipple/core/error.h"

namespace stipple {
namespace {

enum class Action { kill, error, enospc };

struct Failpoint {
    std::string name;
    Action action = Action::error;
    int64_t only = 0;  // 0: every pass
    int64_t passed = 0;
};

std::atomic<bool> g_any{false};
std::mutex g_failpoint_mutex;
std::vector<Failpoint> g_failpoints;

Failpoint parse_one(std::string_view text) {
    Failpoint point;
    const size_t colon = text.find(':');
    STIPPLE_REQUIRE(colon != std::string_view::npos && colon > 0,
                    "STIPPLE_FAILPOINT: expected name:kill|error|enospc, got \"{}\"", text);
    point.name = text.substr(0, colon);
    std::string_view action = text.substr(colon + 1);
    if (const size_t second = action.find(':'); second != std::string_view::npos) {
        const std::string_view count = action.substr(second + 1);
        const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), point.only);
        STIPPLE_REQUIRE(error == std::errc() && end == count.data() + count.size() && point.only > 0,
                        "STIPPLE_FAILPOINT: expected a pass number, got \"{}\"", count);
        action = action.substr(0, second);
    }
    if (action == "kill")
        point.action = Action::kill;
    else if (action == "error")
        point.action = Action::error;
    else if (action == "enospc")
        point.action = Action::enospc;
    else
        STIPPLE_REQUIRE(false, "STIPPLE_FAILPOINT: the action must be kill, error or enospc, got \"{}\"", action);
    return point;
}

bool read_environment() {
    const char* variable = std::getenv("STIPPLE_FAILPOINT");
    if (variable) set_failpoints(variable);
    return true;
}

void act(Action action, std::string_view name) {
    switch (action) {
        case Action::kill: std::raise(SIGKILL); return;
        case Action::error: throw Error(ErrorCode::internal, fmt::format("failpoint {}", name));
        case Action::enospc:
            throw Error(ErrorCode::cannot_write,
                        fmt::format("cannot write: {} (failpoint {})", std::strerror(ENOSPC), name),
                        "free some space, or write to another disk");
    }
}

}  // namespace

void set_failpoints(std::string_view specification) {
    std::vector<Failpoint> points;
    while (!specification.empty()) {
        const size_t comma = specification.find(',');
        points.push_back(parse_one(specification.substr(0, comma)));
        specification = comma == std::string_view::npos ? std::string_view{} : specification.substr(comma + 1);
    }
    const std::lock_guard lock(g_failpoint_mutex);
    g_failpoints.swap(points);
    g_any.store(!g_failpoints.empty(), std::memory_order_release);
}

void failpoint(std::string_view name) {
    static const bool loaded = read_environment();
    if (!loaded || !g_any.load(std::memory_order_acquire)) [[likely]]
        return;
    std::unique_lock lock(g_failpoint_mutex);
    for (Failpoint& point : g_failpoints) {
        if (point.name != name) continue;
        ++point.passed;
        if (point.only != 0 && point.passed != point.only) continue;
        const Action action = point.action;
        lock.unlock();
        act(action, name);
        return;
    }
}

}  // namespace stipple
