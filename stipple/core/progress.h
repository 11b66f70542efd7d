#pragma once
// Progress of a long job, on standard error: a bar on a terminal, elsewhere one plain line every 10 seconds or 10 %.
//
//   Progress progress("upsample", n_tiles, mode, "tiles");
//   parallel_for(..., [&] { ...; progress.add(); });
//   progress.finish("wrote dense.ply");

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "stipple/core/terminal.h"

namespace stipple {

/// automatic  nothing for jobs shorter than half a second
/// always     from the start; still without escape codes where standard error is no terminal
/// never      nothing, not even the finishing message
enum class ProgressMode { automatic, always, never };

class Progress {
public:
    /// `total` 0 means unknown: counts without a percentage. `unit` names what is counted.
    Progress(std::string label, int64_t total, ProgressMode mode = ProgressMode::automatic, std::string unit = {});
    /// Clears the bar. A job that ends without finish(), by an exception, leaves no line behind.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Thread-safe; draws at most ten times a second. Never throws.
    void add(int64_t count = 1) noexcept;

    /// What is known beside the count, from the next drawing on: "fine, 27.31 dB". `rate`, in units a second, takes the
    /// place of the mean since the start, for jobs whose pace changes; 0: not known yet.
    void tell(std::string_view note, double rate);

    /// Clears the bar and leaves one line: "upsample: wrote dense.ply (120 tiles in 3.4 s)". Only the first call
    /// counts.
    void finish(std::string_view message = "done");

private:
    using Clock = std::chrono::steady_clock;  // a wall clock that jumps would break rates and estimates

    double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
    void report(int64_t done, double seconds);

    std::string label_, unit_;
    int64_t total_;
    ProgressMode mode_;
    bool terminal_;
    Clock::time_point start_;
    std::atomic<int64_t> done_{0};
    std::atomic<int64_t> next_done_;    // a plain line is due at this count ...
    std::atomic<double> next_seconds_;  // ... or at this time; a bar at this time only
    std::mutex mutex_;
    bool shown_ = false, finished_ = false;
    std::string note_;
    std::optional<double> rate_;
};

/// The bar's text, at most `width` - 1 columns: parts are left out from the right until it fits, the percentage last.
/// `color` adds escape codes that take no columns. `note` and `rate` as Progress::tell takes them.
std::string progress_bar(std::string_view label, int64_t done, int64_t total, double seconds, std::string_view unit,
                         int width, bool color, std::string_view note = {}, std::optional<double> rate = {});

/// The plain line: "upsample: 40% (48 of 120 tiles), 16 tiles/s, 0:05 left", the note at its end after a comma.
std::string progress_line(std::string_view label, int64_t done, int64_t total, double seconds, std::string_view unit,
                          std::string_view note = {}, std::optional<double> rate = {});

}  // namespace stipple
