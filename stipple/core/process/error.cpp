#include "stipple/core/error.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "stipple/core/terminal.h"

namespace stipple {
namespace {

constexpr std::array<ErrorRule, 13> kRules = {{
    {ErrorCode::internal, "internal", 1, "stipple.InternalError", 500},
    {ErrorCode::bad_argument, "bad_argument", 2, "stipple.ArgumentError", 400},
    {ErrorCode::bad_config, "bad_config", 2, "stipple.ConfigError", 400},
    {ErrorCode::bad_file, "bad_file", 3, "stipple.FileFormatError", 422},
    {ErrorCode::cannot_write, "cannot_write", 4, "stipple.OutputError", 507},
    {ErrorCode::out_of_memory, "out_of_memory", 5, "stipple.OutOfMemoryError", 503},
    {ErrorCode::no_device, "no_device", 5, "stipple.DeviceError", 503},
    {ErrorCode::cuda, "cuda", 5, "stipple.CudaError", 500},
    {ErrorCode::not_finite, "not_finite", 6, "stipple.NumericError", 500},
    {ErrorCode::check_failed, "check_failed", 7, "stipple.CheckFailed", 409},
    {ErrorCode::lost_rank, "lost_rank", 8, "stipple.LostRankError", 503},
    {ErrorCode::interrupted, "interrupted", 130, "KeyboardInterrupt", 503},
    {ErrorCode::terminated, "terminated", 143, "SystemExit", 503},
}};

std::string one_line(const Place& place, const std::string& message) {
    std::string text;
    if (!place.path.empty()) text += place.path + ":";
    if (place.line) text += fmt::format("{}{}:", place.path.empty() ? "line " : "", *place.line);
    if (place.offset) text += fmt::format("{}byte {}:", text.empty() ? "" : " ", *place.offset);
    if (!text.empty()) text += ' ';
    text += message;
    // A message is one line even when it quotes the file: control characters of the input never reach the terminal.
    return printable(text);
}

}  // namespace

std::span<const ErrorRule> error_table() {
    return kRules;
}

const ErrorRule& rule_of(ErrorCode code) {
    for (const ErrorRule& rule : kRules)
        if (rule.code == code) return rule;
    return kRules[0];
}

Error::Error(ErrorCode code, std::string message, std::string hint)
    : Error(code, Place{}, std::move(message), std::move(hint)) {}

Error::Error(ErrorCode code, Place place, std::string message, std::string hint)
    : code_(code), place_(std::move(place)), message_(std::move(message)), hint_(std::move(hint)) {
    what_ = one_line(place_, message_);
}

Error Error::at_path(std::string path) const {
    Place place = place_;
    place.path = std::move(path);
    return Error(code_, std::move(place), message_, hint_);
}

void throw_bad_argument(fmt::string_view format, fmt::format_args args) {
    throw Error(ErrorCode::bad_argument, fmt::vformat(format, args));
}

void assertion_failed(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "stipple: internal error: %s does not hold (%s:%d)\n", condition, file, line);
    std::abort();
}

}  // namespace stipple
