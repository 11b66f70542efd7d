#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "stipple/cli/command.h"
#include "stipple/core/interrupt.h"

namespace stipple::cli {
namespace {

void write_stdout(const char* data, int64_t bytes, bool interruptible) {
    constexpr int64_t kPiece = int64_t{8} << 20;
    while (bytes > 0) {
        if (interruptible) check_interrupted();
        const ssize_t done = ::write(STDOUT_FILENO, data, static_cast<size_t>(bytes < kPiece ? bytes : kPiece));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == EPIPE) throw ClosedPipe{};
        if (done <= 0)
            throw Error(ErrorCode::cannot_write, Place{"-"},
                        fmt::format("cannot write to standard output: {}", std::strerror(errno)));
        data += done;
        bytes -= done;
    }
}

}  // namespace

ProgressMode progress_mode(const Common& common) {
    if (common.progress == "always") return ProgressMode::always;
    return common.progress == "never" || common.quiet ? ProgressMode::never : ProgressMode::automatic;
}

void require_one_stdin(const std::vector<std::string>& inputs) {
    STIPPLE_REQUIRE(std::count(inputs.begin(), inputs.end(), "-") <= 1, "standard input (-) can be read once only");
}

void require_free_stdout(const std::string& output, const Common& common) {
    if (output == "-" && common.json && !common.dry_run)
        throw Error(ErrorCode::bad_argument, "-o - and --json both need standard output",
                    "write into a file with -o FILE, or leave --json out");
}

void print(std::string_view text, bool interruptible) {
    write_stdout(text.data(), static_cast<int64_t>(text.size()), interruptible);
}

void StdoutSink::write(const void* data, int64_t bytes) {
    write_stdout(static_cast<const char*>(data), bytes, true);
}

Mesh load_with_progress(const std::string& path, const std::string& from, int64_t item, const Common& common,
                        io::Warnings& warnings, io::Format* used) {
    io::ReadOptions options;
    options.item = item;
    constexpr int64_t kMegabyte = 1'000'000;
    std::optional<Progress> progress;  // begun with the first bytes, when their total is known
    int64_t shown = 0;
    options.on_progress = [&](int64_t done, int64_t total) {
        if (!progress)
            progress.emplace(fmt::format("reading {}", path), total / kMegabyte, progress_mode(common), "MB");
        progress->add(done / kMegabyte - shown);
        shown = done / kMegabyte;
    };
    io::Format format{};
    if (!from.empty()) format = io::format_by_name(from);
    io::Warnings found;
    Mesh mesh = io::load(path, options, found, from.empty() ? nullptr : &format, used);
    for (const std::string& warning : found) warnings.push_back(fmt::format("{}: {}", path, warning));
    return mesh;
}

std::string grouped(int64_t number) {
    std::string digits = std::to_string(number < 0 ? -number : number);
    for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<size_t>(at), ",");
    return number < 0 ? "-" + digits : digits;
}

std::string bytes_text(int64_t bytes) {
    if (bytes < 1000) return fmt::format("{} B", bytes);
    const char* units[] = {"kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    int unit = -1;
    while (value >= 999.5 && unit < 3) {
        value /= 1000;
        ++unit;
    }
    return fmt::format("{:.3g} {}", value, units[unit]);
}

}  // namespace stipple::cli
