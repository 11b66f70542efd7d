#include "stipple/tasks/weights.h"

#include "stipple/core/program_files.h"

namespace stipple::tasks {

std::vector<std::string> weights_folders() {
    return shared_folders("weights", "STIPPLE_WEIGHTS");
}

std::string find_weights(const std::string& path_or_name) {
    return find_shared(weights_folders(), path_or_name, ".safetensors");
}

std::vector<std::string> list_weights() {
    return list_shared(weights_folders(), ".safetensors");
}

}  // namespace stipple::tasks
