#include "stipple/core/log.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <ctime>
#include <string>

namespace stipple {
namespace {

std::atomic<LogFormat> g_format{LogFormat::text};
std::atomic<LogLevel> g_level{LogLevel::info};

struct LevelText {
    const char* name;    // in JSON
    const char* prefix;  // in text
    const char* color;   // escape sequence of the prefix
};

LevelText text_of(LogLevel level) {
    switch (level) {
        case LogLevel::debug: return {"debug", "debug: ", "\033[2m"};
        case LogLevel::warn: return {"warning", "warning: ", "\033[33m"};
        case LogLevel::error: return {"error", "error: ", "\033[31m"};
        default: return {"info", "", ""};
    }
}

/// "2025-01-31T12:00:00.123Z"
std::string utc_now() {
    std::timespec now = {};
    std::timespec_get(&now, TIME_UTC);
    std::tm parts = {};
    ::gmtime_r(&now.tv_sec, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now.tv_nsec / 1000000);
}

std::string json_line(std::string_view message, const LevelText& level) {
    const nlohmann::ordered_json line = {{"time", utc_now()}, {"level", level.name}, {"message", std::string(message)}};
    // Bytes of a file name that are not UTF-8 are replaced, not refused.
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string text_line(std::string_view message, const LevelText& level) {
    const std::string text = printable(message);
    if (use_color() && *level.color) return fmt::format("stipple: {}{}\033[0m{}", level.color, level.prefix, text);
    return fmt::format("stipple: {}{}", level.prefix, text);
}

}  // namespace

void set_log_level(LogLevel level) {
    g_level.store(level, std::memory_order_relaxed);
}

LogLevel log_level() {
    return g_level.load(std::memory_order_relaxed);
}

void set_log_format(LogFormat format) {
    g_format.store(format, std::memory_order_relaxed);
}

void log_message(LogLevel level, std::string_view message) noexcept {
    if (level == LogLevel::off || level < log_level()) return;
    try {
        const LevelText text = text_of(level);
        write_line(g_format.load(std::memory_order_relaxed) == LogFormat::json ? json_line(message, text)
                                                                               : text_line(message, text));
    } catch (...) {  // memory ran out: the program's own failure will tell
    }
}

}  // namespace stipple
