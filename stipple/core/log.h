#pragma once
// Log: what the library tells people while it works. Lines on standard error, never on standard output.
//
//   stipple: warning: scan.ply: 12 points are not finite
//
// In colour on a terminal (terminal.h has the rule), or as one JSON object per line for machines.

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "stipple/core/terminal.h"

namespace stipple {

enum class LogLevel { debug, info, warn, error, off };
enum class LogFormat { text, json };

/// Messages below the level are dropped before they are formatted. The default is `info`. Thread-safe.
void set_log_level(LogLevel level);
LogLevel log_level();

/// The default is `text`. JSON lines: {"time":"2025-01-31T12:00:00.123Z","level":"warning","message":"..."}.
void set_log_format(LogFormat format);

/// One message; it becomes one line, whatever it contains. Thread-safe. A message is dropped rather than thrown about.
void log_message(LogLevel level, std::string_view message) noexcept;

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
    if (log_level() <= LogLevel::debug) log_message(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
    if (log_level() <= LogLevel::info) log_message(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
    if (log_level() <= LogLevel::warn) log_message(LogLevel::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
    if (log_level() <= LogLevel::error) log_message(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace stipple
