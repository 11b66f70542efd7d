#include "stipple/tasks/weights.h"

#include <fmt/ranges.h>

#include "stipple/core/error.h"
#include "stipple/core/program_files.h"

namespace stipple::tasks {

std::vector<std::string> weights_folders() {
    return shared_folders("weights", "STIPPLE_WEIGHTS");
}

std::string find_weights(const std::string& path_or_name) {
    return find_shared(weights_folders(), path_or_name, ".safetensors");
}

std::string shipped_weights(const std::string& name) {
    std::string path = find_weights(name);
    if (is_file(path)) return path;
    throw Error(ErrorCode::bad_file, fmt::format("the weights {} are not installed", name),
                fmt::format("--model names others; the folders of $STIPPLE_WEIGHTS are searched, and {}",
                            fmt::join(weights_folders(), ", ")));
}

std::vector<std::string> list_weights() {
    return list_shared(weights_folders(), ".safetensors");
}

}  // namespace stipple::tasks
