#include "stipple/cli/radiance/train_run.h"

#include "stipple/core/quoted.h"
#include "stipple/core/toml.h"
#include "stipple/io/text.h"
#include "stipple/radiance/train_keys.h"

namespace stipple::cli {
namespace {

/// Calls visit(key, variable) for what [run] remembers.
template <class Visit, class Resumed>
void visit_run(Visit&& visit, Resumed& r) {
    visit("folder", r.options.scene.folder);
    visit("output", r.options.output);
    visit("mode", r.mode);
    visit("device", r.device);
    visit("reduce", r.options.scene.reduce);
    visit("test_every", r.options.scene.test_every);
    visit("checkpoint_every", r.options.checkpoint_every);
    visit("render_every", r.options.render_every);
    visit("render_views", r.options.render_views);
}

std::string toml_value(const std::string& text) {
    return toml_string(text);
}
std::string toml_value(int64_t number) {
    return std::to_string(number);
}

void take(const TomlItem& item, std::string& to) {
    to = item.values.empty() ? "" : item.values[0];
}
template <class T>
void take(const TomlItem& item, T& to) {
    int64_t number = 0;
    if (item.values.size() != 1 || !io::parse_number(item.values[0], number) || number < 0 || number > INT32_MAX)
        throw Error(ErrorCode::bad_config, Place{"", item.line},
                    fmt::format("run.{}: expected a whole number", item.key));
    to = static_cast<T>(number);
}

}  // namespace

void set_train_option(radiance::TrainOptions& options, const std::string& assignment) {
    const size_t equals = assignment.find('=');
    STIPPLE_REQUIRE(equals != std::string::npos, "--set {}: expected KEY=VALUE", in_quotes(assignment));
    try {
        radiance::set_train_option(options, assignment.substr(0, equals), assignment.substr(equals + 1));
    } catch (const Error& error) {
        throw Error(error.code(), "--set " + error.message(), error.hint());
    }
}

radiance::TrainOptions train_options(const RadianceTrainOptions& given, const std::string& mode, const Common& common) {
    radiance::TrainOptions options;
    if (mode == "small") {
        options = radiance::small_options();
        if (given.voxels > 0)
            options.fine.num_voxels = options.fine.num_voxels_base = given.voxels * given.voxels * given.voxels;
    } else if (mode == "parity") {
        options = radiance::parity_options(given.voxels > 0 ? given.voxels : 160);
    } else {
        options = mode == "fast" ? radiance::fast_options() : radiance::quality_options();
        if (given.voxels > 0) options.fine.num_voxels = given.voxels * given.voxels * given.voxels;
    }
    for (const std::string& assignment : given.settings) set_train_option(options, assignment);
    options.seed = common.seed;
    options.deterministic = given.deterministic;
    return options;
}

std::string run_config(const RadianceTrainOptions& given, const std::string& mode, Device device,
                       const radiance::TrainOptions& training) {
    const ResumedTraining run = {given, mode, to_string(device), {}};
    std::string text = "# stipple radiance train\n[run]\n";
    visit_run([&](const char* key, const auto& value) { text += fmt::format("{} = {}\n", key, toml_value(value)); },
              run);
    return text + "\n" + radiance::to_toml(training);
}

ResumedTraining resumed_training(const std::string& config, const RadianceTrainOptions& given) {
    ResumedTraining run;
    run.training = radiance::train_options_from_toml(config);
    run.options = given;
    const RadianceTrainOptions defaults;
    for (const TomlItem& item : parse_toml(config)) {
        if (item.table != "run" || item.key.empty()) continue;
        bool is_known = false;
        visit_run(
            [&](const char* key, auto& value) {
                if (item.key != key) return;
                take(item, value);
                is_known = true;
            },
            run);
        if (!is_known)
            throw Error(ErrorCode::bad_config, Place{"", item.line}, fmt::format("there is no key run.{}", item.key));
    }
    if (!given.scene.folder.empty()) run.options.scene.folder = given.scene.folder;
    if (!given.output.empty()) run.options.output = given.output;
    if (given.checkpoint_every != defaults.checkpoint_every) run.options.checkpoint_every = given.checkpoint_every;
    if (given.render_every != defaults.render_every) run.options.render_every = given.render_every;
    if (given.render_views != defaults.render_views) run.options.render_views = given.render_views;
    return run;
}

}  // namespace stipple::cli
