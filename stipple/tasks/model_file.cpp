#include "stipple/tasks/model_file.h"

#include "stipple/core/error.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks {

ModelOrEngine load_model_or_engine(const std::string& path, const std::map<std::string, std::string>& options) {
    ModelOrEngine loaded;
    loaded.path = find_weights(path);
    if (!engine::is_engine_file(loaded.path)) {
        loaded.model = models::load_model(loaded.path, options);
        return loaded;
    }
    loaded.file = engine::load_engine(loaded.path);
    if (!options.empty())
        throw Error(ErrorCode::bad_config, fmt::format("{} is an engine, which has no options", loaded.path),
                    "options are set when it is built: stipple engine build --set");
    return loaded;
}

std::optional<network::TensorType> output_type(const ModelOrEngine& source, std::string_view name) {
    if (source.file) {
        const network::TensorType* type = find_type(source.file->program, source.file->program.outputs, name);
        return type ? std::optional(*type) : std::nullopt;
    }
    const network::Network& net = source.model->network;
    for (const network::Output& output : net.outputs)
        if (output.name == name) return net[output.tensor].type;
    return std::nullopt;
}

Device device_for(const ModelOrEngine& source, const std::string& device) {
    if (!source.file || device != "auto") return parse_device(device);
    return parse_device(source.file->options.device.type == DeviceType::cpu ? "cpu" : "cuda");
}

engine::Engine compile(const ModelOrEngine& source, const engine::Options& options, bool precision_given) {
    if (source.model) return engine::compile(source.model->network, source.model->weights, options);
    const engine::Options& built = source.file->options;
    STIPPLE_REQUIRE(!precision_given || options.precision == built.precision,
                    "{} was built in {}, not {}: build another, or give the model itself", source.path,
                    name_of(built.precision), name_of(options.precision));
    STIPPLE_REQUIRE(options.device.type == built.device.type, "{} was built for {}, not {}", source.path,
                    built.device.type == DeviceType::cpu ? "cpu" : "cuda", options.device);
    return engine::compile(*source.file, options.device.index);
}

const network::TensorType* find_type(const engine::Program& program, const std::vector<engine::Binding>& bindings,
                                     std::string_view name) {
    for (const engine::Binding& binding : bindings)
        if (binding.name == name) return &program.values[static_cast<size_t>(binding.value)].type;
    return nullptr;
}

}  // namespace stipple::tasks
