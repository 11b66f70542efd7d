#include "stipple/core/log.h"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

namespace stipple {
namespace {

std::atomic<LogFormat> g_format{LogFormat::text};

struct LevelText {
    const char* name;    // in JSON
    const char* prefix;  // in text
    const char* color;   // escape sequence of the prefix
};

LevelText text_of(spdlog::level::level_enum level) {
    switch (level) {
        case spdlog::level::debug: return {"debug", "debug: ", "\033[2m"};
        case spdlog::level::warn: return {"warning", "warning: ", "\033[33m"};
        case spdlog::level::err: return {"error", "error: ", "\033[31m"};
        default: return {"info", "", ""};
    }
}

std::string json_line(const spdlog::details::log_msg& message, const LevelText& level) {
    const auto since_epoch = message.time.time_since_epoch();
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count() % 1000;
    const std::string time = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                                         fmt::gmtime(spdlog::log_clock::to_time_t(message.time)), milliseconds);
    const nlohmann::ordered_json line = {{"time", time},
                                         {"level", level.name},
                                         {"message", std::string(message.payload.data(), message.payload.size())}};
    // Bytes of a file name that are not UTF-8 are replaced, not refused.
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// terminal.h serialises the lines, so spdlog's own lock would be a second one.
class StderrSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        const LevelText level = text_of(message.level);
        if (g_format.load(std::memory_order_relaxed) == LogFormat::json) return write_line(json_line(message, level));
        const std::string text = printable({message.payload.data(), message.payload.size()});
        if (use_color() && *level.color)
            write_line(fmt::format("stipple: {}{}\033[0m{}", level.color, level.prefix, text));
        else
            write_line(fmt::format("stipple: {}{}", level.prefix, text));
    }
    void flush_() override {}
};

spdlog::level::level_enum spdlog_level(LogLevel level) {
    switch (level) {
        case LogLevel::debug: return spdlog::level::debug;
        case LogLevel::info: return spdlog::level::info;
        case LogLevel::warn: return spdlog::level::warn;
        case LogLevel::error: return spdlog::level::err;
        case LogLevel::off: break;
    }
    return spdlog::level::off;
}

// Not in spdlog's registry: a program that uses spdlog itself keeps its own loggers and levels.
spdlog::logger& logger() {
    static spdlog::logger instance("stipple", std::make_shared<StderrSink>());
    return instance;
}

std::atomic<LogLevel> g_level{LogLevel::info};

}  // namespace

void set_log_level(LogLevel level) {
    g_level.store(level, std::memory_order_relaxed);
    logger().set_level(spdlog_level(level));
}

LogLevel log_level() {
    return g_level.load(std::memory_order_relaxed);
}

void set_log_format(LogFormat format) {
    g_format.store(format, std::memory_order_relaxed);
}

void log_message(LogLevel level, std::string_view message) noexcept {
    try {
        logger().log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
    } catch (...) {  // memory ran out: the program's own failure will tell
    }
}

}  // namespace stipple
