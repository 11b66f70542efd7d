#pragma once
// Models and engines as people name them: one path, either kind of file.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stipple/engine/engine.h"
#include "stipple/engine/engine_file.h"
#include "stipple/models/registry.h"

namespace stipple::tasks {

/// A model (weights and the network they belong to) or an engine that was built from one.
struct ModelOrEngine {
    std::string path;
    std::optional<models::Model> model;
    std::optional<engine::EngineFile> file;

    const std::string& name() const { return model ? model->network.name : file->program.name; }
    const std::map<std::string, std::string>& metadata() const {
        return model ? model->weights.metadata : file->metadata;
    }
};

/// By its content; the path may be the name of shipped weights (tasks/weights.h). Throws Error{bad_file} that names the
/// path, and Error{bad_config} for options (models::load_model) that do not fit a model; an engine has none.
ModelOrEngine load_model_or_engine(const std::string& path, const std::map<std::string, std::string>& options = {});

/// The type of an output by its name, before anything is compiled; none when there is no such output.
std::optional<network::TensorType> output_type(const ModelOrEngine& source, std::string_view name);

/// Where to run it: "cpu", "cuda:1"; "auto" is the kind of device that an engine file was built for.
Device device_for(const ModelOrEngine& source, const std::string& device);

/// A model as the options say, an engine file as it was built: then the options' device must be of its kind, and their
/// precision, which counts when `precision_given`, its precision. Throws Error{bad_argument} otherwise.
engine::Engine compile(const ModelOrEngine& source, const engine::Options& options, bool precision_given);

/// The type of an input or output by its name; null when there is none.
const network::TensorType* find_type(const engine::Program& program, const std::vector<engine::Binding>& bindings,
                                     std::string_view name);

}  // namespace stipple::tasks
