#pragma once
// Errors: one exception type, one table.
//
// Every failure that a user can cause or meet is an `Error` with a code. The table below is the only place that says
// which exit status, Python exception and HTTP status a code becomes.

#include <fmt/core.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stipple {

enum class ErrorCode {
    internal,       // our mistake
    bad_argument,   // wrong use: flag, shape, dtype, range
    bad_config,     // configuration file: unknown key, wrong type, contradiction
    bad_file,       // input that cannot be read or breaks its format
    cannot_write,   // output exists, folder missing, disk full
    out_of_memory,  // host or device
    no_device,      // no such device, or built without it
    cuda,           // a CUDA call failed
    not_finite,     // numeric failure
    check_failed,   // a check that the user asked for, or of the result itself
    lost_rank,      // another process of a distributed run is gone, or has failed
    interrupted,    // SIGINT
    terminated,     // SIGTERM
};

struct ErrorRule {
    ErrorCode code;
    std::string_view name;              // in --json
    int exit_code;                      // of the program
    std::string_view python_exception;  // "stipple.X" derives from the builtin named in docs/errors.md
    int http_status;
};

/// All rules, one per code, in the order of the enum.
std::span<const ErrorRule> error_table();
const ErrorRule& rule_of(ErrorCode code);

/// Where in a file an error was met. A line (1-based) for text, a byte offset for binary formats.
struct Place {
    std::string path;
    std::optional<int64_t> line = {};
    std::optional<int64_t> offset = {};
};

class Error : public std::exception {
public:
    Error(ErrorCode code, std::string message, std::string hint = {});
    Error(ErrorCode code, Place place, std::string message, std::string hint = {});

    ErrorCode code() const { return code_; }
    const Place& place() const { return place_; }
    const std::string& message() const { return message_; }  // without the place
    const std::string& hint() const { return hint_; }        // what to do about it; may be empty

    /// One line: "chair.off:1: expected ..." or "scan.las: byte 96: ...".
    const char* what() const noexcept override { return what_.c_str(); }

    /// The same error, at a path: how `load(path)` completes what `parse(bytes)` threw.
    Error at_path(std::string path) const;

private:
    ErrorCode code_;
    Place place_;
    std::string message_, hint_, what_;
};

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

/// Throws Error{bad_argument}. Out of line, so that a check costs its caller a comparison and a call.
[[noreturn]] void throw_bad_argument(fmt::string_view format, fmt::format_args args);

/// The format string is checked against the arguments when this is compiled.
template <class... Args>
[[noreturn]] inline void requirement_failed(fmt::format_string<Args...> format, Args&&... args) {
    throw_bad_argument(format, fmt::make_format_args(args...));
}

}  // namespace stipple

/// A caller's mistake: throws Error{bad_argument}.
#define STIPPLE_REQUIRE(condition, ...)                 \
    do {                                                \
        if (!(condition)) [[unlikely]]                  \
            ::stipple::requirement_failed(__VA_ARGS__); \
    } while (0)

/// Our mistake: prints and aborts, in every build.
#define STIPPLE_ASSERT(condition)                                        \
    do {                                                                 \
        if (!(condition)) [[unlikely]]                                   \
            ::stipple::assertion_failed(#condition, __FILE__, __LINE__); \
    } while (0)
