#include "stipple/cli/engine_model.h"

#include "stipple/core/json_walk.h"
#include "stipple/io/text.h"

namespace stipple::cli {
namespace {

std::vector<std::string> lines_of_file(const std::string& path) {
    io::FileSource source(path);
    io::ByteReader reader(source);
    std::vector<std::string> lines;
    while (const auto line = reader.line())
        if (const std::string_view text = io::trimmed(*line); !text.empty()) lines.emplace_back(text);
    return lines;
}

std::vector<std::string> strings_of(const std::string& key, const std::string& json) {
    std::vector<std::string> strings;
    // walk_json wants an object.
    const bool valid = walk_json("{\"a\":" + json + "}", [&](std::string_view path, const JsonValue& value) {
        if (path != fmt::format("a/{}", strings.size()) || value.kind != JsonValue::Kind::string)
            throw Error(ErrorCode::bad_file, fmt::format("{} of the metadata is no list of names", key));
        strings.emplace_back(value.text);
    });
    if (!valid) throw Error(ErrorCode::bad_file, fmt::format("{} of the metadata is no JSON", key));
    return strings;
}

}  // namespace

ModelOrEngine load_model_or_engine(const std::string& path) {
    ModelOrEngine loaded;
    loaded.path = path;
    if (engine::is_engine_file(path))
        loaded.file = engine::load_engine(path);
    else
        loaded.model = models::load_model(path);
    return loaded;
}

Device device_for(const ModelOrEngine& source, const Common& common) {
    if (!source.file || common.device != "auto") return parse_device(common.device);
    return parse_device(source.file->options.device.type == DeviceType::cpu ? "cpu" : "cuda");
}

engine::Engine compile_any(const ModelOrEngine& source, const engine::Options& options, bool precision_given) {
    if (source.model) return engine::compile(source.model->network, source.model->weights, options);
    const engine::Options& built = source.file->options;
    STIPPLE_REQUIRE(!precision_given || options.precision == built.precision,
                    "{} was built in {}, not {}: build another, or give the model itself", source.path,
                    name_of(built.precision), name_of(options.precision));
    STIPPLE_REQUIRE(options.device.type == built.device.type, "{} was built for {}, not {}", source.path,
                    built.device.type == DeviceType::cpu ? "cpu" : "cuda", options.device);
    return engine::compile(*source.file, options.device.index);
}

std::vector<engine::Precision> parse_precisions(const std::vector<std::string>& texts) {
    std::vector<engine::Precision> precisions;
    for (const std::string& text : texts) {
        const engine::Precision precision = engine::parse_precision(text);
        for (const engine::Precision known : precisions)
            STIPPLE_REQUIRE(known != precision, "--precision names {} twice", text);
        precisions.push_back(precision);
    }
    return precisions;
}

std::vector<std::string> class_names(const std::map<std::string, std::string>& metadata, const std::string& names_path,
                                     int64_t count) {
    std::vector<std::string> names;
    std::string from = names_path;
    if (!names_path.empty()) {
        names = lines_of_file(names_path);
    } else if (const auto found = metadata.find("stipple.classes"); found != metadata.end()) {
        names = strings_of(found->first, found->second);
        from = found->first;
    } else {
        for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("class {}", i));
    }
    if (static_cast<int64_t>(names.size()) != count)
        throw Error(ErrorCode::bad_file,
                    fmt::format("{} names {} classes, the network has {}", from, names.size(), count));
    return names;
}

const network::TensorType* find_type(const engine::Program& program, const std::vector<engine::Binding>& bindings,
                                     std::string_view name) {
    for (const engine::Binding& binding : bindings)
        if (binding.name == name) return &program.values[static_cast<size_t>(binding.value)].type;
    return nullptr;
}

}  // namespace stipple::cli
