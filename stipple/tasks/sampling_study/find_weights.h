#pragma once
// Where the study finds weights by name.

#include <string>
#include <vector>

namespace stipple::tasks::study {

/// NAME.safetensors or NAME/weights.safetensors of the folders, first to last, then installed weights of the name
/// (tasks/weights.h); "" for none. Of a name that ends with "-progressive" also without that ending, where the file is
/// a progressive sampler: so shipped samplers are called. Throws Error{bad_file} for such a file that cannot be read.
std::string find_study_weights(const std::string& name, const std::vector<std::string>& folders);

}  // namespace stipple::tasks::study
