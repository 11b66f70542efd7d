#include "stipple/core/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <ftw.h>
#include <memory>

#include "stipple/core/error.h"

namespace stipple {

bool is_folder(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

void make_folder(const std::string& path) {
    if (!is_folder(path) && ::mkdir(path.c_str(), 0777) != 0 && !(errno == EEXIST && is_folder(path)))
        throw Error(ErrorCode::cannot_write, Place{path},
                    fmt::format("cannot make the folder: {}", std::strerror(errno)));
}

std::string stem_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    const size_t dot = name.rfind('.');
    return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

std::vector<std::string> list_folder(const std::string& path) {
    struct Close {
        void operator()(DIR* folder) const { ::closedir(folder); }
    };
    const auto fail = [&](int error) {
        throw Error(ErrorCode::bad_file, Place{path}, fmt::format("cannot read the folder: {}", std::strerror(error)));
    };
    const std::unique_ptr<DIR, Close> folder(::opendir(path.c_str()));
    if (!folder) fail(errno);
    std::vector<std::string> names;
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(folder.get());
        if (!entry && errno != 0) fail(errno);
        if (!entry) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

int remove_tree(const std::string& path) noexcept {
    const auto remove_one = [](const char* name, const struct stat*, int, struct FTW*) {
        return std::remove(name) == 0 || errno == ENOENT ? 0 : errno;
    };
    const int result = ::nftw(path.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (result >= 0) return result;
    return errno == ENOENT ? 0 : errno;
}

}  // namespace stipple
