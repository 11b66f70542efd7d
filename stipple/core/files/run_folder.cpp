#include "stipple/core/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "stipple/core/append.h"
#include "stipple/core/atomic_file.h"
#include "stipple/core/checked.h"
#include "stipple/core/checkpoint.h"
#include "stipple/core/error.h"
#include "stipple/core/folder.h"
#include "stipple/core/json_walk.h"

namespace stipple {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxConfig = int64_t{16} << 20;

[[noreturn]] void fail(ErrorCode code, const std::string& path, const char* doing, int error) {
    throw Error(code, Place{path}, fmt::format("{}: {}", doing, std::strerror(error)));
}

// What a run that died before its configuration was stored may have left; any other entry makes the folder somebody's.
bool is_empty_run(const std::string& path) {
    for (const std::string& name : list_folder(path))
        if (name != "lock" && name.rfind(".config.toml.", 0) != 0) return false;
    return true;
}

void require_empty(const std::string& path) {
    if (is_empty_run(path)) return;
    throw Error(ErrorCode::cannot_write, Place{path}, "the run folder is not empty",
                "continue that run with --resume, or choose another folder");
}

std::string read_small_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail(ErrorCode::bad_file, path, "cannot open", errno);
    std::string text;
    char block[4096];
    for (;;) {
        const ssize_t count = ::read(fd, block, sizeof block);
        if (count < 0 && errno == EINTR) continue;
        const int error = errno;
        if (count <= 0) {
            ::close(fd);
            if (count < 0) fail(ErrorCode::bad_file, path, "cannot read", error);
            return text;
        }
        text.append(block, static_cast<size_t>(count));
        if (static_cast<int64_t>(text.size()) > kMaxConfig) {
            ::close(fd);
            throw Error(ErrorCode::bad_file, Place{path}, fmt::format("larger than {} bytes", kMaxConfig));
        }
    }
}

struct Line {
    int64_t begin = 0;
    std::string text;  // without the newline
};

// The line of `fd` that ends at byte `end`, read backwards in blocks.
Line line_before(int fd, int64_t end, const std::string& path) {
    Line line;
    line.begin = end;
    char block[4096];
    while (line.begin > 0) {
        const int64_t want = std::min<int64_t>(line.begin, sizeof block);
        const ssize_t count = ::pread(fd, block, static_cast<size_t>(want), line.begin - want);
        if (count < 0 && errno == EINTR) continue;
        if (count != want) fail(ErrorCode::bad_file, path, "cannot read", count < 0 ? errno : EIO);
        const std::string_view text(block, static_cast<size_t>(want));
        // The newline at `end` itself belongs to the line.
        const size_t last = line.begin == end && text.back() == '\n' ? text.size() - 1 : text.size();
        const size_t newline = last == 0 ? std::string_view::npos : text.rfind('\n', last - 1);
        const size_t from = newline == std::string_view::npos ? 0 : newline + 1;
        line.text.insert(0, text.substr(from, last - from));
        line.begin -= want - static_cast<int64_t>(from);
        if (newline != std::string_view::npos) break;
    }
    return line;
}

// The "step" of a line of metrics, if it is one and has one.
std::optional<double> step_of(std::string_view line) {
    std::optional<double> step;
    const bool valid = walk_json(line, [&](std::string_view path, const JsonValue& value) {
        const bool is_number = value.kind == JsonValue::Kind::integer || value.kind == JsonValue::Kind::number;
        if (path == "step" && is_number) step = value.number;
    });
    return valid ? step : std::nullopt;
}

int64_t size_of_file(int fd, const std::string& path) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) fail(ErrorCode::cannot_write, path, "cannot be examined", errno);
    return status.st_size;
}

}  // namespace

RunFolder RunFolder::create(const std::string& path, std::string_view config) {
    STIPPLE_REQUIRE(!path.empty(), "the path of the run folder is empty");
    std::error_code error;
    fs::create_directories(path, error);
    if (error) fail(ErrorCode::cannot_write, path, "cannot make the run folder", error.value());
    RunFolder run;
    run.path_ = path;
    run.config_ = config;
    require_empty(path);  // before the lock file is made: a folder that is not a run stays untouched
    run.lock();
    require_empty(path);  // and again, now that nobody else can fill it
    fs::create_directories(path + "/ckpt", error);
    if (error) fail(ErrorCode::cannot_write, path, "cannot make the folder ckpt", error.value());
    run.open_metrics();
    AtomicFile file(path + "/config.toml", Overwrite::refuse);
    file.write(config);
    file.commit();  // last: from here on it is a run that can be resumed
    sync_folder(folder_of(path));
    return run;
}

RunFolder RunFolder::resume(const std::string& path) {
    RunFolder run;
    run.path_ = path;
    run.config_ = read_small_file(path + "/config.toml");
    run.lock();
    std::error_code error;
    fs::create_directories(path + "/ckpt", error);
    if (error) fail(ErrorCode::cannot_write, path, "cannot make the folder ckpt", error.value());
    remove_unfinished_checkpoints(path);
    run.open_metrics();
    run.repair_metrics();
    return run;
}

RunFolder::RunFolder(RunFolder&& other) noexcept {
    *this = std::move(other);
}

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
    if (this == &other) return *this;
    close();
    path_ = std::move(other.path_);
    config_ = std::move(other.config_);
    lock_ = std::exchange(other.lock_, -1);
    metrics_ = std::exchange(other.metrics_, -1);
    return *this;
}

RunFolder::~RunFolder() {
    close();
}

void RunFolder::close() noexcept {
    if (metrics_ >= 0) ::close(metrics_);
    if (lock_ >= 0) ::close(lock_);  // and with it the lock
    metrics_ = lock_ = -1;
}

void RunFolder::lock() {
    const std::string file = path_ + "/lock";
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0) fail(ErrorCode::cannot_write, path_, "cannot open the lock file", errno);
    while (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) fail(ErrorCode::cannot_write, path_, "cannot lock the run folder", errno);
        char text[32] = {};
        const ssize_t count = ::pread(lock_, text, sizeof text - 1, 0);
        const std::string_view owner(text, static_cast<size_t>(std::max<ssize_t>(0, count)));
        throw Error(ErrorCode::cannot_write, Place{path_},
                    fmt::format("the run folder is in use by process {}", owner.substr(0, owner.find('\n'))),
                    "wait for that process, or choose another folder");
    }
    const std::string text = fmt::format("{}\n", ::getpid());
    if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        fail(ErrorCode::cannot_write, path_, "cannot write the lock file", errno);
}

void RunFolder::open_metrics() {
    metrics_ = ::open(metrics_path().c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (metrics_ < 0) fail(ErrorCode::cannot_write, metrics_path(), "cannot open", errno);
}

void RunFolder::repair_metrics() {
    const int64_t size = size_of_file(metrics_, metrics_path());
    int64_t end = size;
    while (end > 0) {
        const Line line = line_before(metrics_, end, metrics_path());
        const bool complete = line.begin + static_cast<int64_t>(line.text.size()) < end;  // it has its newline
        if (complete && is_json_object(line.text)) break;
        end = line.begin;
    }
    if (end != size && ::ftruncate(metrics_, end) != 0)
        fail(ErrorCode::cannot_write, metrics_path(), "cannot cut", errno);
}

void RunFolder::rewind_metrics(int64_t step) {
    const int64_t size = size_of_file(metrics_, metrics_path());
    int64_t end = size;
    while (end > 0) {
        const Line line = line_before(metrics_, end, metrics_path());
        const std::optional<double> found = step_of(line.text);
        if (!found || *found <= static_cast<double>(step)) break;
        end = line.begin;
    }
    if (end != size && ::ftruncate(metrics_, end) != 0)
        fail(ErrorCode::cannot_write, metrics_path(), "cannot cut", errno);
}

void RunFolder::append_metrics(std::string_view object) {
    STIPPLE_REQUIRE(object.find('\n') == std::string_view::npos && is_json_object(object),
                    "metrics must be one JSON object on one line");
    std::string line(object);
    line += '\n';
    append_whole(metrics_, metrics_path(), line);
}

void RunFolder::sync_metrics() {
    if (::fsync(metrics_) != 0) fail(ErrorCode::cannot_write, metrics_path(), "cannot flush to the disk", errno);
}

int64_t free_space(const std::string& path) {
    struct statvfs status {};
    if (::statvfs(path.c_str(), &status) != 0)
        fail(ErrorCode::cannot_write, path, "cannot ask for the free space", errno);
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(uint64_t{status.f_bavail}, uint64_t{status.f_frsize}, &bytes)) bytes = kMax;
    return static_cast<int64_t>(std::min(bytes, kMax));
}

void require_free_space(const std::string& run, int64_t bytes, int64_t count) {
    STIPPLE_REQUIRE(bytes >= 0 && count >= 0, "{} checkpoints of {} bytes", count, bytes);
    const int64_t wanted = checked_mul(bytes, checked_add(count, 1));
    const int64_t there = free_space(run);
    if (wanted <= there) return;
    throw Error(ErrorCode::cannot_write, Place{run},
                fmt::format("{} checkpoints of {} bytes will not fit: {} bytes are wanted, {} are free", count, bytes,
                            wanted, there),
                "free some space, keep fewer checkpoints, or choose a folder on another disk");
}

}  // namespace stipple
