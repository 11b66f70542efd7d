#include "stipple/tasks/weights.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "stipple/core/error.h"
#include "stipple/core/folder.h"

namespace stipple::tasks {
namespace {

constexpr const char* kExtension = ".safetensors";

bool is_file(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0 && !is_folder(path);
}

std::string parent_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos || slash == 0 ? "" : path.substr(0, slash);
}

/// "" where the system does not tell.
std::string program_path() {
    std::string path(4096, '\0');
    const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
    path.resize(length > 0 && length < static_cast<ssize_t>(path.size()) ? static_cast<size_t>(length) : 0);
    return path;
}

}  // namespace

std::vector<std::string> weights_folders() {
    std::vector<std::string> folders;
    if (const char* given = std::getenv("STIPPLE_WEIGHTS")) {
        std::string text = given;
        for (size_t begin = 0; begin <= text.size();) {
            const size_t end = std::min(text.find(':', begin), text.size());
            if (end > begin) folders.push_back(text.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    const std::string prefix = parent_of(parent_of(program_path()));  // of PREFIX/bin/stipple
    if (prefix.empty()) return folders;
    folders.push_back(prefix + "/share/stipple/weights");
    // CHECKOUT/build/PRESET/bin/stipple
    const std::string checkout = parent_of(parent_of(prefix));
    if (is_file(checkout + "/stipple/tasks/weights.h")) folders.push_back(checkout + "/weights");
    return folders;
}

std::string find_weights(const std::string& path_or_name) {
    if (path_or_name.empty() || path_or_name.find('/') != std::string::npos || is_file(path_or_name))
        return path_or_name;
    for (const std::string& folder : weights_folders())
        for (const char* extension : {"", kExtension})
            if (const std::string path = folder + "/" + path_or_name + extension; is_file(path)) return path;
    return path_or_name;
}

std::string shipped_weights(const std::string& name) {
    std::string path = find_weights(name);
    if (is_file(path)) return path;
    throw Error(ErrorCode::bad_file, fmt::format("the weights {} are not installed", name),
                fmt::format("--model names others; the folders of $STIPPLE_WEIGHTS are searched, and {}",
                            fmt::join(weights_folders(), ", ")));
}

std::vector<std::string> list_weights() {
    std::vector<std::string> names;
    const std::string extension = kExtension;
    for (const std::string& folder : weights_folders()) {
        if (!is_folder(folder)) continue;
        for (const std::string& name : list_folder(folder))
            if (name.size() > extension.size() && name.ends_with(extension))
                names.push_back(name.substr(0, name.size() - extension.size()));
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace stipple::tasks
