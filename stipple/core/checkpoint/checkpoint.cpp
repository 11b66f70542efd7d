#include "stipple/core/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>

#include "stipple/core/atomic_file.h"
#include "stipple/core/checkpoint/manifest.h"
#include "stipple/core/failpoint.h"
#include "stipple/core/folder.h"

namespace stipple {
namespace {

constexpr std::array kFailpoints = {
    "ckpt.begin",           "ckpt.after_mkdir",    "ckpt.mid_write",       "ckpt.after_write",  "ckpt.after_fsync",
    "ckpt.before_manifest", "ckpt.after_manifest", "ckpt.after_dir_fsync", "ckpt.after_rename", "ckpt.after_ckpt_fsync",
    "ckpt.before_latest",   "ckpt.after_latest",   "ckpt.before_delete",   "ckpt.mid_delete",   "ckpt.end",
};

[[noreturn]] void fail(const std::string& path, const char* doing, int error) {
    std::string hint;
    if (error == ENOSPC || error == EDQUOT) hint = "free some space, or keep fewer checkpoints";
    throw Error(ErrorCode::cannot_write, Place{path}, fmt::format("{}: {}", doing, std::strerror(error)), hint);
}

// A file of a checkpoint while it is written. Unlike AtomicFile it does not look for interrupts.
class CheckpointSink : public ByteSink {
public:
    CheckpointSink(std::string path, int64_t expected) : path_(std::move(path)), expected_(expected) {
        pending_.reserve(kPending);
        fd_ = ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (fd_ < 0) fail(path_, "cannot create", errno);
        if (expected <= 0) return;
        const int error = ::posix_fallocate(fd_, 0, expected);
        // File systems that cannot reserve say so; on them a full disk shows later.
        if (error == 0 || error == EOPNOTSUPP || error == EINVAL || error == ENOSYS || error == EINTR) return;
        ::close(fd_);
        fail(path_, "cannot reserve space", error);
    }
    ~CheckpointSink() override {
        if (fd_ >= 0) ::close(fd_);
    }
    CheckpointSink(const CheckpointSink&) = delete;
    CheckpointSink& operator=(const CheckpointSink&) = delete;

    using ByteSink::write;
    void write(const void* data, int64_t bytes) override {
        if (bytes == 0) return;  // zlib takes a null pointer for a wish to start anew
        const auto* from = static_cast<const std::byte*>(data);
        crc_ = ::crc32_z(crc_, reinterpret_cast<const Bytef*>(from), static_cast<size_t>(bytes));
        bytes_ += bytes;
        if (pending_.size() + static_cast<size_t>(bytes) > kPending) flush();
        if (static_cast<size_t>(bytes) > kPending)
            put(from, static_cast<size_t>(bytes));
        else
            pending_.insert(pending_.end(), from, from + bytes);
    }

    Checkpoint::File finish(const std::string& name) {
        flush();
        failpoint("ckpt.after_write");
        if (expected_ >= 0 && bytes_ != expected_)
            throw Error(ErrorCode::internal, Place{path_},
                        fmt::format("{} bytes announced, {} written", expected_, bytes_));
        if (::fsync(fd_) != 0) fail(path_, "cannot flush to the disk", errno);
        const int fd = fd_;
        fd_ = -1;
        if (::close(fd) != 0) fail(path_, "cannot close", errno);
        failpoint("ckpt.after_fsync");
        return {name, bytes_, static_cast<uint32_t>(crc_)};
    }

private:
    static constexpr size_t kPending = size_t{1} << 20;

    void flush() {
        const size_t half = pending_.size() / 2;
        put(pending_.data(), half);
        failpoint("ckpt.mid_write");
        put(pending_.data() + half, pending_.size() - half);
        pending_.clear();
    }

    void put(const std::byte* from, size_t bytes) {
        while (bytes > 0) {
            const ssize_t done = ::write(fd_, from, bytes);
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) fail(path_, "cannot write", done < 0 ? errno : ENOSPC);
            from += done;
            bytes -= static_cast<size_t>(done);
        }
    }

    std::string path_;
    int64_t expected_, bytes_ = 0;
    uLong crc_ = 0;
    int fd_ = -1;
    std::vector<std::byte> pending_;
};

// A directory that disappears unless it is released.
class TemporaryFolder {
public:
    explicit TemporaryFolder(std::string path) : path_(std::move(path)) {
        remove_tree(path_);  // of a dead process that had our number
        if (::mkdir(path_.c_str(), 0777) != 0) fail(path_, "cannot make the folder", errno);
    }
    ~TemporaryFolder() {
        if (!path_.empty()) remove_tree(path_);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    void release() { path_.clear(); }

private:
    std::string path_;
};

struct Step {
    int64_t step;
    std::string path;
};

// Directories step-N of a run, newest first.
std::vector<Step> list_steps(const std::string& run) {
    std::vector<Step> steps;
    struct stat status {};
    if (::stat((run + "/ckpt").c_str(), &status) != 0 && errno == ENOENT) return steps;
    for (const std::string& name : list_folder(run + "/ckpt")) {
        if (name.rfind("step-", 0) != 0) continue;
        int64_t step = 0;
        const char* last = name.data() + name.size();
        const auto [rest, bad] = std::from_chars(name.data() + 5, last, step);
        if (bad == std::errc() && rest == last && step >= 0) steps.push_back({step, run + "/ckpt/" + name});
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.step > b.step; });
    return steps;
}

void remove_checkpoint(const std::string& run, const Step& old) {
    failpoint("ckpt.before_delete");
    const std::string gone = fmt::format("{}/ckpt/.tmp-{}-{}-old", run, old.step, ::getpid());
    // First the name, so that no half-emptied directory passes for a damaged checkpoint.
    if (::rename(old.path.c_str(), gone.c_str()) != 0) fail(old.path, "cannot rename", errno);
    failpoint("ckpt.mid_delete");
    if (const int error = remove_tree(gone)) fail(gone, "cannot remove", error);
}

void remove_older(const std::string& run, const std::string& saved, KeepRule keep) {
    const std::vector<Step> steps = list_steps(run);
    std::set<std::string> kept = {saved};
    std::string best;
    double best_score = 0;
    int sound = 0;
    for (const Step& step : steps) {  // newest first
        try {
            const Checkpoint checkpoint = manifest::read(step.path);
            manifest::check_sizes(checkpoint);
            if (sound++ < keep.last) kept.insert(step.path);
            const auto& score = checkpoint.info.score;
            if (keep.best && score && (best.empty() || *score <= best_score)) {
                best = step.path;
                best_score = *score;
            }
        } catch (const manifest::NewerVersion&) {
            kept.insert(step.path);
        } catch (const Error& error) {
            // Damage does not count as one of the last; it stays while it is newer than those.
            if (error.code() != ErrorCode::bad_file) throw;
            if (sound < keep.last) kept.insert(step.path);
        }
    }
    if (!best.empty()) kept.insert(best);
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)  // oldest first
        if (!kept.count(step->path)) remove_checkpoint(run, *step);
}

// Puts the finished directory in its place. True when `temporary` now holds a checkpoint of the same step.
bool move_into_place(const std::string& temporary, const std::string& place) {
    if (::rename(temporary.c_str(), place.c_str()) == 0) return false;
    if (errno != ENOTEMPTY && errno != EEXIST) fail(place, "cannot rename the finished checkpoint", errno);
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) return true;
    // A file system without exchange: the only moment when a step that was saved is missing.
    const std::string aside = temporary + "-old";
    if (::rename(place.c_str(), aside.c_str()) != 0) fail(place, "cannot rename", errno);
    if (::rename(temporary.c_str(), place.c_str()) != 0) fail(place, "cannot rename the finished checkpoint", errno);
    if (::rename(aside.c_str(), temporary.c_str()) != 0) fail(aside, "cannot rename", errno);
    return true;
}

void replace_latest(const std::string& run, const std::string& name) {
    failpoint("ckpt.before_latest");
    const std::string temporary = fmt::format("{}/ckpt/.tmp-latest-{}", run, ::getpid());
    const std::string link = run + "/ckpt/latest";
    ::unlink(temporary.c_str());
    if (::symlink(name.c_str(), temporary.c_str()) != 0) {
        if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) return;  // no links here; nobody needs it
        fail(link, "cannot link", errno);
    }
    if (::rename(temporary.c_str(), link.c_str()) != 0) {
        const int error = errno;
        ::unlink(temporary.c_str());
        fail(link, "cannot rename", error);
    }
    sync_folder(run + "/ckpt");
    failpoint("ckpt.after_latest");
}

}  // namespace

std::string save_checkpoint(const std::string& run, const CheckpointInfo& info, std::span<const CheckpointFile> files,
                            KeepRule keep) {
    STIPPLE_REQUIRE(info.step >= 0 && keep.last >= 1, "checkpoint of step {}, {} to keep", info.step, keep.last);
    std::set<std::string_view> names;
    for (const CheckpointFile& file : files)
        STIPPLE_REQUIRE(manifest::is_file_name(file.name) && names.insert(file.name).second,
                        "\"{}\" is not a name for a file of a checkpoint, or there are two of it", file.name);
    const std::string folder = run + "/ckpt", name = fmt::format("step-{:08}", info.step);
    const std::string place = folder + "/" + name;
    const std::string temporary = fmt::format("{}/.tmp-{}-{}", folder, info.step, ::getpid());
    failpoint("ckpt.begin");
    TemporaryFolder guard(temporary);
    failpoint("ckpt.after_mkdir");
    std::vector<Checkpoint::File> written;
    for (const CheckpointFile& file : files) {
        CheckpointSink sink(temporary + "/" + file.name, file.bytes);
        file.write(sink);
        written.push_back(sink.finish(file.name));
    }
    failpoint("ckpt.before_manifest");
    CheckpointSink sink(temporary + "/" + manifest::kName, -1);
    sink.write(manifest::format(info, written));
    sink.finish(manifest::kName);
    failpoint("ckpt.after_manifest");
    sync_folder(temporary);
    failpoint("ckpt.after_dir_fsync");
    const bool replaced = move_into_place(temporary, place);
    guard.release();
    failpoint("ckpt.after_rename");
    sync_folder(folder);
    failpoint("ckpt.after_ckpt_fsync");
    if (replaced) {
        if (const int error = remove_tree(temporary)) fail(temporary, "cannot remove", error);
    }
    replace_latest(run, name);
    remove_older(run, place, keep);
    failpoint("ckpt.end");
    return place;
}

int64_t Checkpoint::bytes() const {
    int64_t total = 0;
    for (const File& entry : files) total += entry.bytes;
    return total;
}

std::string Checkpoint::file(const std::string& name) const {
    for (const File& entry : files)
        if (entry.name == name) return path + "/" + name;
    throw Error(ErrorCode::bad_file, Place{path}, fmt::format("the checkpoint has no file {}", name));
}

Checkpoint open_checkpoint(const std::string& path) {
    Checkpoint checkpoint = manifest::read(path);
    manifest::check_sizes(checkpoint);
    manifest::check_contents(checkpoint);
    return checkpoint;
}

std::optional<Checkpoint> find_checkpoint(const std::string& run, Damaged damaged, std::vector<std::string>& warnings) {
    struct stat status {};
    if (::stat(run.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
        throw Error(ErrorCode::bad_file, Place{run}, "no such run folder");
    for (const Step& step : list_steps(run)) {
        try {
            Checkpoint checkpoint = open_checkpoint(step.path);
            if (checkpoint.info.step == step.step) return checkpoint;
            throw Error(ErrorCode::bad_file, Place{step.path},
                        fmt::format("the manifest says step {}", checkpoint.info.step));
        } catch (const manifest::NewerVersion&) {
            throw;
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_file || damaged == Damaged::refuse) throw;
            warnings.push_back(fmt::format("damaged checkpoint skipped: {}", error.what()));
        }
    }
    return std::nullopt;
}

void remove_unfinished_checkpoints(const std::string& run) {
    for (const std::string& name : list_folder(run + "/ckpt")) {
        if (name.rfind(".tmp-", 0) != 0) continue;
        const std::string path = run + "/ckpt/" + name;
        if (const int error = remove_tree(path)) fail(path, "cannot remove", error);
    }
}

std::span<const char* const> checkpoint_failpoints() {
    return kFailpoints;
}

}  // namespace stipple
