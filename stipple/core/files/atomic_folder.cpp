#include "stipple/core/atomic_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "stipple/core/error.h"
#include "stipple/core/folder.h"

namespace stipple {
namespace {

[[noreturn]] void fail_folder(const std::string& path, const char* doing, int error) {
    throw Error(ErrorCode::cannot_write, Place{path}, fmt::format("{}: {}", doing, std::strerror(error)));
}

std::string without_slashes(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path;
}

}  // namespace

void require_writable_folder(const std::string& path, Overwrite overwrite) {
    const std::string place = without_slashes(path);
    struct stat status {};
    if (::lstat(place.c_str(), &status) == 0) {
        if (!S_ISDIR(status.st_mode)) throw Error(ErrorCode::cannot_write, Place{place}, "is there and is no folder");
        if (overwrite == Overwrite::refuse)
            throw Error(ErrorCode::cannot_write, Place{place}, "exists", "--overwrite replaces it");
    }
    const std::string around = folder_of(place);
    if (!is_folder(around)) throw Error(ErrorCode::cannot_write, Place{place}, "the folder around it does not exist");
    if (::access(around.c_str(), W_OK | X_OK) != 0) fail_folder(place, "cannot write", errno);
}

AtomicFolder::AtomicFolder(const std::string& path, Overwrite overwrite)
    : place_(without_slashes(path)), overwrite_(overwrite) {
    require_writable_folder(place_, overwrite);
    temporary_ = fmt::format("{}/.{}.{}.tmp", folder_of(place_), place_.substr(place_.rfind('/') + 1), ::getpid());
    if (::mkdir(temporary_.c_str(), 0777) != 0) fail_folder(place_, "cannot make a folder beside it", errno);
}

AtomicFolder::~AtomicFolder() {
    if (!is_done_) remove_tree(temporary_);
}

std::string AtomicFolder::make(const std::string& relative) const {
    const std::string whole = temporary_ + "/" + relative;
    for (size_t end = temporary_.size() + 1; end != std::string::npos;) {
        end = whole.find('/', end);
        const std::string part = whole.substr(0, end);
        if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) fail_folder(part, "cannot make the folder", errno);
        if (end != std::string::npos) ++end;
    }
    return whole;
}

void AtomicFolder::commit() {
    sync_folder(temporary_);
    // A folder that is not empty is not replaced by rename: without permission what came in between is safe.
    if (::rename(temporary_.c_str(), place_.c_str()) != 0) {
        if (overwrite_ == Overwrite::refuse || (errno != ENOTEMPTY && errno != EEXIST))
            fail_folder(place_, "cannot rename the finished folder", errno);
        if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) != 0) {
            // A file system without exchange: the only moment in which nothing is there.
            const std::string aside = temporary_ + "-old";
            if (::rename(place_.c_str(), aside.c_str()) != 0) fail_folder(place_, "cannot rename", errno);
            if (::rename(temporary_.c_str(), place_.c_str()) != 0) {
                const int error = errno;
                ::rename(aside.c_str(), place_.c_str());
                fail_folder(place_, "cannot rename the finished folder", error);
            }
            temporary_ = aside;
        }
        remove_tree(temporary_);
    }
    is_done_ = true;
    sync_folder(folder_of(place_));
}

}  // namespace stipple
