#include "stipple/tasks/sampling_study/find_weights.h"

#include "stipple/core/program_files.h"
#include "stipple/models/samplenet.h"
#include "stipple/tasks/model_file.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks::study {
namespace {

std::string find_named(const std::string& name, const std::vector<std::string>& folders) {
    for (const std::string& folder : folders)
        for (const char* ending : {".safetensors", "/weights.safetensors"})
            if (const std::string path = folder + "/" + name + ending; is_file(path)) return path;
    // A name that is not found comes back; a file of that name in the working folder is not meant.
    const std::string path = find_weights(name + ".safetensors");
    return path.find('/') != std::string::npos && is_file(path) ? path : "";
}

bool is_progressive_sampler(const std::string& path) {
    const ModelOrEngine source = load_model_or_engine(path);
    return source.model && source.name() == "samplenet" &&
           models::samplenet_options(source.model->network.config).progressive;
}

}  // namespace

std::string find_study_weights(const std::string& name, const std::vector<std::string>& folders) {
    if (const std::string path = find_named(name, folders); !path.empty()) return path;
    constexpr std::string_view kEnding = "-progressive";
    if (!name.ends_with(kEnding)) return "";
    const std::string path = find_named(name.substr(0, name.size() - kEnding.size()), folders);
    return !path.empty() && is_progressive_sampler(path) ? path : "";
}

}  // namespace stipple::tasks::study
