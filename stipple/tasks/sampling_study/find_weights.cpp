#include "stipple/tasks/sampling_study/find_weights.h"

#include "stipple/core/program_files.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks::study {

std::string find_study_weights(const std::string& name, const std::vector<std::string>& folders, bool among_installed) {
    for (const std::string& folder : folders)
        for (const char* ending : {".safetensors", "/weights.safetensors"})
            if (const std::string path = folder + "/" + name + ending; is_file(path)) return path;
    if (!among_installed) return "";
    // A name that is not found comes back; a file of that name in the working folder is not meant.
    const std::string path = find_weights(name + ".safetensors");
    return path.find('/') != std::string::npos && is_file(path) ? path : "";
}

}  // namespace stipple::tasks::study
