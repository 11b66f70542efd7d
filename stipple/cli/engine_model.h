#pragma once
// Models and engines as commands name them: one path, either kind of file.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stipple/cli/command.h"
#include "stipple/engine/engine.h"
#include "stipple/engine/engine_file.h"
#include "stipple/models/registry.h"

namespace stipple::cli {

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

/// By its content. Throws Error{bad_file} that names the path.
ModelOrEngine load_model_or_engine(const std::string& path);

/// Where to run it: as --device says; `auto` is the kind of device that an engine file was built for.
Device device_for(const ModelOrEngine& source, const Common& common);

/// A model as the options say, an engine file as it was built: then the options' device must be of its kind, and their
/// precision, which counts when `precision_given`, its precision. Throws Error{bad_argument} otherwise.
engine::Engine compile_any(const ModelOrEngine& source, const engine::Options& options, bool precision_given);

/// "fp32,bf16" -> both. Throws Error{bad_argument}.
std::vector<engine::Precision> parse_precisions(const std::vector<std::string>& texts);

/// Names of `count` classes: lines of the file at `names_path`, else "stipple.classes" of the metadata (a JSON array),
/// else "class 0" and so on. Throws Error{bad_file} when there are more or fewer.
std::vector<std::string> class_names(const std::map<std::string, std::string>& metadata, const std::string& names_path,
                                     int64_t count);

/// The type of an input or output by its name; null when there is none.
const network::TensorType* find_type(const engine::Program& program, const std::vector<engine::Binding>& bindings,
                                     std::string_view name);

}  // namespace stipple::cli
