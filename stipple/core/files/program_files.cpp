#include "stipple/core/program_files.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "stipple/core/folder.h"

namespace stipple {
namespace {

std::string parent_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos || slash == 0 ? "" : path.substr(0, slash);
}

bool is_checkout(const std::string& folder) {
    return is_file(folder + "/stipple/core/program_files.h");
}

std::vector<std::string>& roots() {
    static std::vector<std::string> all;
    return all;
}

}  // namespace

std::string program_path() {
    std::string path(4096, '\0');
    const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
    path.resize(length > 0 && length < static_cast<ssize_t>(path.size()) ? static_cast<size_t>(length) : 0);
    return path;
}

bool is_file(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0 && !is_folder(path);
}

std::vector<std::string> shared_folders(const std::string& kind, const char* variable) {
    std::vector<std::string> folders;
    if (const char* given = std::getenv(variable)) {
        const std::string text = given;
        for (size_t begin = 0; begin <= text.size();) {
            const size_t end = std::min(text.find(':', begin), text.size());
            if (end > begin) folders.push_back(text.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    for (const std::string& root : roots()) {
        folders.push_back(root + "/" + kind);
        const std::string checkout = parent_of(parent_of(parent_of(parent_of(root))));
        if (is_checkout(checkout)) folders.push_back(checkout + "/" + kind);
    }
    const std::string prefix = parent_of(parent_of(program_path()));  // of PREFIX/bin/stipple
    if (prefix.empty()) return folders;
    folders.push_back(prefix + "/share/stipple/" + kind);
    // CHECKOUT/build/PRESET/bin/stipple
    const std::string checkout = parent_of(parent_of(prefix));
    if (is_checkout(checkout)) folders.push_back(checkout + "/" + kind);
    return folders;
}

void add_shared_root(const std::string& folder) {
    roots().push_back(folder);
}

std::string find_shared(const std::vector<std::string>& folders, const std::string& path_or_name,
                        const std::string& extension) {
    if (path_or_name.empty() || path_or_name.find('/') != std::string::npos || is_file(path_or_name))
        return path_or_name;
    for (const std::string& folder : folders)
        for (const std::string& ending : {std::string(), extension})
            if (const std::string path = folder + "/" + path_or_name + ending; is_file(path)) return path;
    return path_or_name;
}

std::vector<std::string> list_shared(const std::vector<std::string>& folders, const std::string& extension) {
    std::vector<std::string> names;
    for (const std::string& folder : folders) {
        if (!is_folder(folder)) continue;
        for (const std::string& name : list_folder(folder))
            if (name.size() > extension.size() && name.ends_with(extension))
                names.push_back(name.substr(0, name.size() - extension.size()));
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace stipple
