#include "stipple/tasks/upsampling_study/methods.h"

#include <chrono>
#include <cmath>
#include <set>

#include "stipple/core/folder.h"
#include "stipple/io/format.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks::study {
namespace {

/// "NAME=PATH", or a path alone.
Method named(MethodKind kind, const std::string& text) {
    const size_t equals = text.find('=');
    if (equals != std::string::npos) return {kind, text.substr(0, equals), text.substr(equals + 1)};
    STIPPLE_REQUIRE(kind == MethodKind::network, "--compare wants NAME=FOLDER, got {}", text);
    return {kind, stem_of(text), text};
}

void require_name(const Method& method, std::set<std::string>& taken) {
    const auto is_fine = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    };
    STIPPLE_REQUIRE(!method.name.empty() && method.name[0] != '.', "a method needs a name: NAME={}", method.path);
    for (const char c : method.name)
        STIPPLE_REQUIRE(is_fine(c), "the name of a method has letters, digits, '.', '_' and '-', got \"{}\"",
                        method.name);
    STIPPLE_REQUIRE(taken.insert(method.name).second, "two methods are called {}", method.name);
}

PointCloud load_made(const std::string& path) {
    io::Warnings ignored;
    return io::load_cloud(path, {}, ignored);
}

}  // namespace

std::vector<Method> list_methods(const std::vector<std::string>& models, const std::vector<std::string>& folders) {
    std::vector<Method> methods = {{MethodKind::input, "input"}, {MethodKind::midpoints, kMidpoints}};
    for (const std::string& model : models)
        if (model != kMidpoints) methods.push_back(named(MethodKind::network, model));
    if (models.empty()) methods.push_back({MethodKind::network, kUpsamplerWeights, kUpsamplerWeights});
    for (const std::string& folder : folders) methods.push_back(named(MethodKind::files, folder));
    methods.push_back({MethodKind::floor, "floor"});
    std::set<std::string> taken = {"truth"};
    for (const Method& method : methods) {
        require_name(method, taken);
        if (method.kind == MethodKind::files && !is_folder(method.path))
            throw Error(ErrorCode::bad_file, Place{method.path}, "there is no such folder");
    }
    return methods;
}

std::string neighbours_option(const network::Network& network) {
    for (const char* name : {"query_neighbours", "interpolation_neighbours"})
        if (network.config.count(name)) return name;
    return "";
}

std::string input_name(const Condition& condition, uint64_t seed) {
    return fmt::format("{}-{}", condition.id, seed);
}

MethodRunner::Loaded& MethodRunner::loaded(const Method& method, int64_t neighbours) {
    Loaded& entry = networks_[{method.name, neighbours}];
    if (!entry.checksum.empty()) return entry;
    ModelOrEngine source;
    source.path = find_weights(method.path);
    std::map<std::string, std::string> options = method.overrides;
    source.model = models::load_model(source.path, options);
    entry.option = neighbours_option(source.model->network);
    entry.checksum = fmt::format("{:016x}", network::checksum(source.model->weights));
    if (neighbours > 0 && !entry.option.empty()) {
        options[entry.option] = std::to_string(neighbours);
        source.model = models::load_model(source.path, options);
    }
    if (neighbours == 0 || !entry.option.empty())
        entry.upsampler = std::make_unique<Upsampler>(std::move(source), RunnerOptions{.device = device_});
    return entry;
}

bool MethodRunner::runs(const Method& method, const Condition& condition) {
    if (condition.neighbours == 0) return true;
    return method.kind == MethodKind::network && loaded(method, condition.neighbours).upsampler;
}

void MethodRunner::check(const Method& method, const Condition& condition, const Shape& shape, uint64_t seed) {
    if (method.kind == MethodKind::network) loaded(method, condition.neighbours);
    if (method.kind == MethodKind::files && runs(method, condition)) find_file(method, condition, shape, seed);
}

std::string MethodRunner::find_file(const Method& method, const Condition& condition, const Shape& shape,
                                    uint64_t seed) const {
    const std::string own = method.path + "/" + input_name(condition, seed);
    const std::string folder = is_folder(own) || several_ ? own : method.path;
    if (!is_folder(folder))
        throw Error(ErrorCode::bad_file, Place{folder},
                    fmt::format("{} has nothing for {}, seed {}", method.name, condition.title, seed),
                    "a folder for each input, named as in `inputs` of the study");
    for (const std::string& name : list_folder(folder))
        if (stem_of(name) == shape.name) return folder + "/" + name;
    throw Error(ErrorCode::bad_file, Place{folder}, fmt::format("{} has no cloud of {}", method.name, shape.name));
}

std::string MethodRunner::fingerprint_of(const Method& method, const Condition& condition, const Shape& shape,
                                         uint64_t seed) {
    switch (method.kind) {
        case MethodKind::network:
            return fmt::format("{}-{}{}", loaded(method, condition.neighbours).checksum, condition.neighbours,
                               method.temperature > 0 ? fmt::format("-t{}", method.temperature) : "");
        case MethodKind::files: return fingerprint(load_made(find_file(method, condition, shape, seed)));
        default: return "-";
    }
}

Made MethodRunner::run(const Method& method, const Condition& condition, const Shape& shape, const Mesh& mesh,
                       const PointCloud& input, uint64_t seed) {
    switch (method.kind) {
        case MethodKind::input: return {input.clone(), NAN};
        case MethodKind::files: return {load_made(find_file(method, condition, shape, seed)), NAN};
        case MethodKind::floor: return {draw_floor(mesh, condition, seed), NAN};
        default: break;
    }
    Upsampler without_network;
    Upsampler& upsampler =
        method.kind == MethodKind::network ? *loaded(method, condition.neighbours).upsampler : without_network;
    const auto begin = std::chrono::steady_clock::now();
    UpsampleOptions options{.ratio = condition.ratio};
    if (method.temperature > 0) options.temperature = method.temperature, options.seed = seed;
    Made made{upsample(upsampler, input, options).cloud, 0};
    made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return made;
}

}  // namespace stipple::tasks::study
