#include "stipple/cli/command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

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

const Fields& common_fields() {
    static constexpr const char* kTables[] = {"md", "csv", "json"};
    static const Fields fields = {
        field<&Common::json>("json", "Print one JSON object instead of text"),
        field<&Common::table>("table", "Print a table instead of text").words(kTables),
        field<&Common::device>("device", "auto: a GPU if there is one").shown("cpu|cuda[:N]|auto"),
        field<&Common::seed>("seed", "Seed of all random numbers"),
        field<&Common::threads>("threads", "CPU threads; 0 takes all cores"),
        field<&Common::overwrite>("overwrite", "Replace an output that exists"),
        field<&Common::dry_run>("dry_run", "Check inputs and outputs, write nothing"),
        field<&Common::progress>("progress", "auto: for jobs that take a while; always, never")
            .words(kWhenWords)
            .shown("WHEN"),
        field<&Common::color>("color", "auto: on a terminal, unless NO_COLOR is set").words(kWhenWords),
        field<&Common::quiet>("quiet", "No warnings").short_name('q'),
        field<&Common::verbose>("verbose", "More messages").short_name('v')};
    return fields;
}

ProgressMode progress_mode(const Common& common) {
    const bool is_quiet = common.quiet && common.progress == ProgressMode::automatic;
    return is_quiet ? ProgressMode::never : common.progress;
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

bool is_of_one_input(const Error& error) {
    return error.code() == ErrorCode::bad_file ||
           (error.code() == ErrorCode::bad_argument && !error.place().path.empty());
}

void count_errors(int64_t inputs, std::string_view what, Result& result) {
    if (result.errors.empty()) return;
    result.failure = Error(result.errors[0].code(),
                           fmt::format("{} of {} {} could not be read", result.errors.size(), inputs, what));
}

void for_each_input(size_t inputs, std::string_view what, Result& result,
                    const std::function<void(size_t index)>& work) {
    for (size_t i = 0; i < inputs; ++i) {
        try {
            work(i);
        } catch (const Error& error) {
            if (inputs == 1 || !is_of_one_input(error)) throw;
            result.errors.push_back(error);
        }
    }
    count_errors(static_cast<int64_t>(inputs), what, result);
}

void FileProgress::show(const std::string& path, int64_t done, int64_t total) {
    constexpr int64_t kMegabyte = 1'000'000;
    const bool was_read = path == path_ && shown_ < 0;
    if (was_read && done >= total) return;
    if (path != path_ || was_read || done / kMegabyte < shown_) {
        bar_.emplace(fmt::format("reading {}", path), total / kMegabyte, mode_, "MB");
        path_ = path;
        shown_ = 0;
    }
    bar_->add(done / kMegabyte - shown_);
    shown_ = done / kMegabyte;
    if (total > 0 && done >= total) {  // what is done with the file has a bar of its own
        bar_.reset();
        shown_ = -1;
    }
}

Mesh load_with_progress(const std::string& path, const std::string& from, int64_t item, const Common& common,
                        io::Warnings& warnings, io::Format* used) {
    FileProgress progress(common);
    io::ReadOptions options;
    options.item = item;
    options.on_progress = [&](int64_t done, int64_t total) { progress.show(path, done, total); };
    io::Format format{};
    if (!from.empty()) format = io::format_by_name(from);
    io::Warnings found;
    Mesh mesh = io::load(path, options, found, from.empty() ? nullptr : &format, used);
    for (const std::string& warning : found) warnings.push_back(fmt::format("{}: {}", path, warning));
    return mesh;
}

}  // namespace stipple::cli
