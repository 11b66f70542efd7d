#include "stipple/core/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"

namespace stipple {
namespace {

constexpr size_t kPending = size_t{1} << 20;  // small writes are gathered to this size

// Temporary files alive, for a signal handler: fixed memory, a slot is owned by whoever swaps its pointer in.
std::array<std::atomic<const char*>, 64> g_temporary_files;

void remember(const char* path) {
    for (auto& slot : g_temporary_files) {
        const char* empty = nullptr;
        if (slot.compare_exchange_strong(empty, path)) return;
    }
}

void forget(const char* path) {
    for (auto& slot : g_temporary_files) {
        const char* expected = path;
        if (slot.compare_exchange_strong(expected, nullptr)) return;
    }
}

[[noreturn]] void fail_at(const std::string& path, const char* doing, int error) {
    std::string hint;
    if (error == ENOSPC || error == EDQUOT) hint = "free some space, or write to another disk with -o";
    throw Error(ErrorCode::cannot_write, Place{path}, fmt::format("{}: {}", doing, std::strerror(error)), hint);
}

}  // namespace

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

void require_writable(const std::string& path, Overwrite overwrite) {
    struct stat status {};
    const std::string folder = folder_of(path);
    STIPPLE_REQUIRE(!path.empty(), "the output path is empty");
    if (::stat(folder.c_str(), &status) != 0) {
        const int error = errno;
        throw Error(ErrorCode::cannot_write, Place{path}, fmt::format("folder {}: {}", folder, std::strerror(error)),
                    error == ENOENT ? "create the folder first" : "");
    }
    if (!S_ISDIR(status.st_mode)) throw Error(ErrorCode::cannot_write, Place{path}, folder + " is not a folder");
    if (::access(folder.c_str(), W_OK | X_OK) != 0) fail_at(path, "the folder is not writable", errno);
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno != ENOENT) fail_at(path, "cannot write", errno);
        return;
    }
    if (S_ISDIR(status.st_mode)) throw Error(ErrorCode::cannot_write, Place{path}, "is a folder");
    if (overwrite == Overwrite::refuse)
        throw Error(ErrorCode::cannot_write, Place{path}, "exists already", "add --overwrite to replace it");
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
        throw Error(ErrorCode::cannot_write, Place{path}, "is not a regular file",
                    "write to standard output with -o - instead");
}

AtomicFile::AtomicFile(std::string path, Overwrite overwrite) : path_(std::move(path)), overwrite_(overwrite) {
    require_writable(path_, overwrite);
    static std::atomic<int> counter{0};
    const size_t slash = path_.rfind('/');
    // The name of the output is shortened so that the temporary name fits wherever the output's does.
    const std::string name = path_.substr(slash == std::string::npos ? 0 : slash + 1).substr(0, 200);
    const std::string prefix = slash == std::string::npos ? "" : path_.substr(0, slash + 1);
    // A dead process that had our number may have left a file of that name: then the next number.
    do {
        temporary_ = fmt::format("{}.{}.{}-{}.tmp", prefix, name, ::getpid(), counter.fetch_add(1));
        fd_ = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EEXIST);
    if (fd_ < 0) fail_at(path_, "cannot create a file in its folder", errno);
    remember(temporary_.c_str());
}

AtomicFile::~AtomicFile() {
    if (fd_ >= 0) ::close(fd_);
    if (temporary_.empty()) return;
    ::unlink(temporary_.c_str());
    forget(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const {
    fail_at(path_, doing, errno);
}

void AtomicFile::write(const void* data, int64_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    if (pending_.size() + static_cast<size_t>(bytes) <= kPending) {
        if (pending_.capacity() == 0) pending_.reserve(kPending);
        pending_.insert(pending_.end(), from, from + bytes);
        return;
    }
    flush();
    // Pieces, so that an interrupt is noticed within a large array.
    constexpr int64_t kPiece = int64_t{8} << 20;
    while (bytes > 0) {
        check_interrupted();
        const ssize_t done = ::write(fd_, from, static_cast<size_t>(bytes < kPiece ? bytes : kPiece));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail("cannot write");
        from += done;
        bytes -= done;
    }
}

void AtomicFile::rewrite(int64_t offset, const void* data, int64_t bytes) {
    flush();
    const auto* from = static_cast<const std::byte*>(data);
    while (bytes > 0) {
        const ssize_t done = ::pwrite(fd_, from, static_cast<size_t>(bytes), offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail("cannot write");
        from += done;
        offset += done;
        bytes -= done;
    }
}

void AtomicFile::flush() {
    for (size_t done = 0; done < pending_.size();) {
        const ssize_t step = ::write(fd_, pending_.data() + done, pending_.size() - done);
        if (step < 0 && errno == EINTR) continue;
        if (step <= 0) fail("cannot write");
        done += static_cast<size_t>(step);
    }
    pending_.clear();
}

const std::string& AtomicFile::temporary_path() {
    flush();
    return temporary_;
}

void AtomicFile::commit() {
    STIPPLE_ASSERT(fd_ >= 0);
    flush();
    check_interrupted();
    if (::fsync(fd_) != 0) fail("cannot flush to the disk");
    const std::string folder = folder_of(path_);  // now: behind the rename nothing may run out of memory
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) fail("cannot close");
    if (overwrite_ == Overwrite::refuse) {
        // link() fails where rename() would replace: the promise holds even if somebody was faster.
        if (::link(temporary_.c_str(), path_.c_str()) == 0) {
            ::unlink(temporary_.c_str());
        } else if (errno == EEXIST) {
            throw Error(ErrorCode::cannot_write, Place{path_}, "exists already", "add --overwrite to replace it");
        } else {
            // A file system without hard links: check, then rename.
            require_writable(path_, overwrite_);
            if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename the finished file");
        }
    } else if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
        fail("cannot rename the finished file");
    }
    forget(temporary_.c_str());
    temporary_.clear();
    sync_folder(folder);
}

void sync_folder(const std::string& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) fail_at(folder, "cannot open the folder", errno);
    const int result = ::fsync(fd);
    const int error = errno;
    ::close(fd);
    // Some file systems have no fsync for folders; their renames are as durable as they can be.
    if (result != 0 && error != EINVAL && error != ENOTSUP) fail_at(folder, "cannot flush the folder", error);
}

void remove_temporary_files_now() {
    for (auto& slot : g_temporary_files)
        if (const char* path = slot.exchange(nullptr)) ::unlink(path);
}

}  // namespace stipple
