#include "stipple/core/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace stipple {
namespace {

constexpr double kQuiet = 0.5;        // seconds before the first sign in automatic mode
constexpr double kBarInterval = 0.1;  // seconds
constexpr double kLineInterval = 10;  // seconds

// 950, 12.3k, 4.56M: at most five characters.
std::string short_number(double value) {
    constexpr const char* kSuffix[] = {"", "k", "M", "G", "T", "P", "E"};
    int power = 0;
    while (value >= 999.5 && power < 6) {
        value /= 1000;
        ++power;
    }
    if (value >= 99.95 || (power == 0 && value == std::floor(value)))
        return fmt::format("{:.0f}{}", value, kSuffix[power]);
    return fmt::format("{:.{}f}{}", value, value >= 9.995 ? 1 : 2, kSuffix[power]);
}

std::string duration(double seconds) {
    const auto whole = static_cast<int64_t>(std::min(std::ceil(seconds), 359999.0));
    if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

int percent(int64_t done, int64_t total) {
    // 100 only when all is done, whatever rounding says.
    return done >= total
               ? 100
               : std::min(99, static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total)));
}

// Columns of UTF-8 text, taking one for each character: labels are words.
int columns(std::string_view text) {
    return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string_view first_columns(std::string_view text, int count) {
    size_t end = 0;
    for (int taken = 0; end < text.size(); ++end)
        if ((text[end] & 0xc0) != 0x80 && taken++ == count) break;
    return text.substr(0, end);
}

std::string rate_text(double rate, std::string_view unit) {
    return unit.empty() ? short_number(rate) + "/s" : fmt::format("{} {}/s", short_number(rate), unit);
}

/// Units a second: what was told, or the mean; 0: not known.
double rate_of(int64_t done, double seconds, std::optional<double> told) {
    if (told) return *told;
    return seconds > 0 ? static_cast<double>(done) / seconds : 0;
}

double seconds_left(int64_t done, int64_t total, double rate) {
    return static_cast<double>(std::max<int64_t>(0, total - done)) / rate;
}

}  // namespace

std::string progress_bar(std::string_view label, int64_t done, int64_t total, double seconds, std::string_view unit,
                         int width, bool color, std::string_view note, std::optional<double> told) {
    const int room = std::max(0, width - 1);  // the last column stays free: some terminals wrap when it is filled
    std::string text = total > 0 ? fmt::format("{:3}%", percent(done, total)) : short_number(static_cast<double>(done));
    const int label_room = room - columns(text) - 1;
    if (label_room >= 3 && !label.empty()) text = fmt::format("{} {}", first_columns(label, label_room), text);
    text = first_columns(text, room);
    std::string tail;
    const auto add_tail = [&](const std::string& part) {
        if (columns(text) + columns(tail) + columns(part) + 2 <= room) tail += "  " + part;
    };
    const double rate = rate_of(done, seconds, told);
    if (done > 0 && total > 0 && (rate > 0 || !told))
        add_tail(duration(rate > 0 ? seconds_left(done, total, rate) : 0) + " left");
    if (!note.empty()) add_tail(std::string(note));
    if (done > 0 && (rate > 0 || !told)) add_tail(rate_text(rate, unit));
    const int bar = std::min(40, room - columns(text) - columns(tail) - 3);
    if (total > 0 && bar >= 5) {
        const int filled = static_cast<int>(static_cast<double>(bar) *
                                            std::min(1.0, static_cast<double>(done) / static_cast<double>(total)));
        const std::string full(static_cast<size_t>(filled), '#');
        text += fmt::format(" [{}{}{}{}]", color ? "\033[32m" : "", full, color ? "\033[0m" : "",
                            std::string(static_cast<size_t>(bar - filled), '-'));
    }
    return text + tail;
}

std::string progress_line(std::string_view label, int64_t done, int64_t total, double seconds, std::string_view unit,
                          std::string_view note, std::optional<double> told) {
    const std::string space = unit.empty() ? "" : " ";
    std::string text =
        total > 0 ? fmt::format("{}: {}% ({} of {}{}{})", label, percent(done, total), done, total, space, unit)
                  : fmt::format("{}: {}{}{}", label, done, space, unit);
    const double rate = rate_of(done, seconds, told);
    if (done > 0 && (rate > 0 || !told)) {
        text += ", " + rate_text(rate, unit);
        if (total > 0) text += fmt::format(", {} left", duration(rate > 0 ? seconds_left(done, total, rate) : 0));
    }
    return note.empty() ? text : fmt::format("{}, {}", text, note);
}

Progress::Progress(std::string label, int64_t total, ProgressMode mode, std::string unit)
    : label_(printable(label)),
      unit_(printable(unit)),
      total_(std::max<int64_t>(0, total)),
      mode_(mode),
      terminal_(stderr_is_terminal()),
      start_(Clock::now()) {
    // Lines by count have no business on a terminal, nor where the total is unknown.
    const bool by_count = !terminal_ && total_ > 0;
    next_done_ = by_count ? std::max<int64_t>(1, total_ / 10) : std::numeric_limits<int64_t>::max();
    next_seconds_ = terminal_ ? (mode == ProgressMode::always ? 0 : kQuiet) : kLineInterval;
}

Progress::~Progress() {
    if (terminal_ && shown_ && !finished_) show_status("");
}

void Progress::add(int64_t count) noexcept {
    const int64_t done = done_.fetch_add(count, std::memory_order_relaxed) + count;
    if (mode_ == ProgressMode::never) return;
    const double seconds = elapsed();
    if (done < next_done_.load(std::memory_order_relaxed) && seconds < next_seconds_.load(std::memory_order_relaxed))
        return;
    if (mode_ == ProgressMode::automatic && seconds < kQuiet) return;
    // Whoever is late leaves the drawing to whoever is at it: work never waits for the terminal.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || finished_) return;
    try {
        report(done_.load(std::memory_order_relaxed), seconds);
    } catch (...) {  // memory ran out: not for want of a bar
    }
}

void Progress::report(int64_t done, double seconds) {
    if (done < next_done_ && seconds < next_seconds_) return;  // somebody else has just reported
    shown_ = true;
    if (terminal_) {
        next_seconds_ = seconds + kBarInterval;
        show_status(progress_bar(label_, done, total_, seconds, unit_, terminal_width(), use_color(), note_, rate_));
        return;
    }
    next_seconds_ = seconds + kLineInterval;
    if (total_ > 0) {
        const int64_t tenth = std::max<int64_t>(1, total_ / 10);
        next_done_ = (done / tenth + 1) * tenth;
    }
    if (total_ > 0 && done >= total_) return;  // finish() has the last word
    write_line(progress_line(label_, done, total_, seconds, unit_, note_, rate_));
}

void Progress::tell(std::string_view note, double rate) {
    const std::lock_guard lock(mutex_);
    note_ = printable(note);
    rate_ = rate;
}

void Progress::finish(std::string_view message) {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
    if (terminal_ && shown_) show_status("");
    const double seconds = elapsed();
    if (mode_ == ProgressMode::never || (mode_ == ProgressMode::automatic && seconds < kQuiet)) return;
    const int64_t done = done_.load(std::memory_order_relaxed);
    const std::string count = unit_.empty() ? "" : fmt::format("{} {} in ", done, unit_);
    write_line(fmt::format("{}: {} ({}{:.1f} s)", label_, printable(message), count, seconds));
}

}  // namespace stipple
