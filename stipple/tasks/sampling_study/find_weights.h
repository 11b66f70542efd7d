#pragma once
// Where the study finds weights by name.

#include <string>
#include <vector>

namespace stipple::tasks::study {

/// NAME.safetensors or NAME/weights.safetensors of the folders, first to last, then, where `among_installed`, installed
/// weights of the name (tasks/weights.h); "" for none.
std::string find_study_weights(const std::string& name, const std::vector<std::string>& folders, bool among_installed);

}  // namespace stipple::tasks::study
