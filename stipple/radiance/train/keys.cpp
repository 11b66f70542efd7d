#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>
#include <variant>

#include "stipple/core/error.h"
#include "stipple/core/nearest_name.h"
#include "stipple/core/quoted.h"
#include "stipple/core/toml.h"
#include "stipple/io/text.h"
#include "stipple/radiance/train_keys.h"

namespace stipple::radiance {
namespace {

template <class Options>
struct TrainKey {
    const char* name;
    std::variant<int Options::*, int64_t Options::*, float Options::*, bool Options::*, std::vector<int> Options::*,
                 StepPath Options::*>
        member;
};

// The one list of keys.
const TrainKey<StageOptions> kStageKeys[] = {{"N_iters", &StageOptions::N_iters},
                                             {"N_rand", &StageOptions::N_rand},
                                             {"num_voxels", &StageOptions::num_voxels},
                                             {"num_voxels_base", &StageOptions::num_voxels_base},
                                             {"alpha_init", &StageOptions::alpha_init},
                                             {"lrate_density", &StageOptions::lrate_density},
                                             {"lrate_features", &StageOptions::lrate_features},
                                             {"lrate_network", &StageOptions::lrate_network},
                                             {"lrate_environment", &StageOptions::lrate_environment},
                                             {"lrate_decay", &StageOptions::lrate_decay},
                                             {"weight_entropy_last", &StageOptions::weight_entropy_last},
                                             {"weight_rgbper", &StageOptions::weight_rgbper},
                                             {"weight_tv_density", &StageOptions::weight_tv_density},
                                             {"weight_tv_features", &StageOptions::weight_tv_features},
                                             {"fast_color_thres", &StageOptions::fast_color_thres},
                                             {"pg_scale", &StageOptions::pg_scale},
                                             {"stepsize", &StageOptions::stepsize},
                                             {"refresh", &StageOptions::refresh}};
const TrainKey<TrainOptions> kTrainKeys[] = {{"bbox_thres", &TrainOptions::bbox_thres},
                                             {"bbox_seen", &TrainOptions::bbox_seen},
                                             {"world_bound_scale", &TrainOptions::world_bound_scale},
                                             {"environment_side", &TrainOptions::environment_side},
                                             {"half_network", &TrainOptions::half_network},
                                             {"profile_steps", &TrainOptions::profile_steps},
                                             {"jitter", &TrainOptions::jitter},
                                             {"occupancy_returns", &TrainOptions::occupancy_returns},
                                             {"path", &TrainOptions::path}};
// Of a run, beside those: the command line has options of its own for them.
constexpr const char* kBackground = "background";
constexpr const char* kSeed = "seed";
constexpr const char* kDeterministic = "deterministic";

[[noreturn]] void refuse(const std::string& key, const std::string& value, const char* expected) {
    throw Error(ErrorCode::bad_argument, fmt::format("{}: expected {}, got {}", key, expected, in_quotes(value)));
}

int64_t whole_number(const std::string& key, const std::string& value, int64_t most) {
    double number = 0;  // 1e6 is a whole number too
    if (!io::parse_number(value, number) || number < 0 || number > static_cast<double>(most) ||
        number != std::floor(number))
        refuse(key, value, "a whole number");
    return static_cast<int64_t>(number);
}

void assign(const std::string& key, const std::string& value, int& to) {
    to = static_cast<int>(whole_number(key, value, INT32_MAX));
}
void assign(const std::string& key, const std::string& value, int64_t& to) {
    to = whole_number(key, value, int64_t{1} << 40);
}
void assign(const std::string& key, const std::string& value, float& to) {
    double number = 0;
    if (!io::parse_number(value, number) || !std::isfinite(number)) refuse(key, value, "a number");
    to = static_cast<float>(number);
}
void assign(const std::string& key, const std::string& value, bool& to) {
    if (value != "true" && value != "false") refuse(key, value, "true or false");
    to = value == "true";
}
void assign(const std::string& key, const std::string& value, std::vector<int>& to) {
    to.clear();
    for (size_t at = 0; at < value.size();) {
        const size_t end = std::min(value.find(',', at), value.size());
        assign(key, value.substr(at, end - at), to.emplace_back());
        at = end + 1;
    }
}
void assign(const std::string& key, const std::string& value, StepPath& to) {
    const std::optional<StepPath> path = step_path_by_name(value);
    if (!path) refuse(key, value, "reference, fused_adam, fused_rendering, per_ray_weights or final");
    to = *path;
}

template <class Options, size_t n>
bool set_by_name(const TrainKey<Options> (&keys)[n], Options& options, const std::string& name, const std::string& key,
                 const std::string& value) {
    for (const TrainKey<Options>& known : keys)
        if (name == known.name) {
            std::visit([&](auto member) { assign(key, value, options.*member); }, known.member);
            return true;
        }
    return false;
}

std::vector<std::string> all_keys() {
    std::vector<std::string> names;
    for (const char* stage : {"coarse", "fine"})
        for (const auto& key : kStageKeys) names.push_back(fmt::format("{}.{}", stage, key.name));
    for (const auto& key : kTrainKeys) names.push_back(key.name);
    return names;
}

std::string text_of(int number) {
    return std::to_string(number);
}
std::string text_of(int64_t number) {
    return std::to_string(number);
}
std::string text_of(float number) {
    return fmt::format("{}", number);
}
std::string text_of(bool truth) {
    return truth ? "true" : "false";
}
std::string text_of(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
    return "[" + text + "]";
}

std::string text_of(StepPath path) {
    return toml_string(name_of(path));
}

template <class Options, size_t n>
std::string lines_of(const TrainKey<Options> (&keys)[n], const Options& options) {
    std::string text;
    for (const TrainKey<Options>& key : keys)
        text += fmt::format("{} = {}\n", key.name,
                            std::visit([&](auto member) { return text_of(options.*member); }, key.member));
    return text;
}

/// One of the three that have no key of their own; false where it is none of them.
bool set_of_run(TrainOptions& options, const std::string& key, const std::string& value) {
    if (key == kBackground) {
        for (size_t i = 0; i < std::size(kBackgroundNames); ++i)
            if (value == kBackgroundNames[i]) {
                options.background = static_cast<Background>(i);
                return true;
            }
        refuse(key, value, "white, black, random or learned");
    } else if (key == kSeed) {
        uint64_t seed = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seed);
        if (error != std::errc() || end != value.data() + value.size()) refuse(key, value, "a whole number");
        options.seed = seed;
    } else if (key == kDeterministic) {
        assign(key, value, options.deterministic);
    } else {
        return false;
    }
    return true;
}

}  // namespace

void set_train_option(TrainOptions& options, const std::string& key, const std::string& value) {
    const size_t dot = key.find('.');
    const std::string stage = key.substr(0, dot == std::string::npos ? 0 : dot),
                      name = dot == std::string::npos ? key : key.substr(dot + 1);
    const bool is_set = stage == "coarse" ? set_by_name(kStageKeys, options.coarse, name, key, value)
                        : stage == "fine" ? set_by_name(kStageKeys, options.fine, name, key, value)
                        : stage.empty()   ? set_by_name(kTrainKeys, options, name, key, value)
                                          : false;
    if (is_set) return;
    const std::string near = nearest_name(key, all_keys());
    throw Error(ErrorCode::bad_argument, fmt::format("there is no key {}", in_quotes(key)),
                near.empty() ? "keys are those of docs/radiance.md" : fmt::format("did you mean {}?", near));
}

std::string train_keys_text() {
    std::string stages, others;
    for (const auto& key : kStageKeys) stages += fmt::format("{}{}", stages.empty() ? "" : ", ", key.name);
    for (const auto& key : kTrainKeys) others += fmt::format("{}{}", others.empty() ? "" : ", ", key.name);
    return fmt::format("Keys of coarse. and fine.: {}\nOther keys: {}", stages, others);
}

std::string to_toml(const TrainOptions& options) {
    return fmt::format("[train]\n{} = {}\n{} = {}\n{} = {}\n{}\n[coarse]\n{}\n[fine]\n{}", kBackground,
                       toml_string(kBackgroundNames[static_cast<int>(options.background)]), kSeed, options.seed,
                       kDeterministic, options.deterministic, lines_of(kTrainKeys, options),
                       lines_of(kStageKeys, options.coarse), lines_of(kStageKeys, options.fine));
}

TrainOptions train_options_from_toml(std::string_view text) {
    TrainOptions options;
    std::set<std::string> missing = {kBackground, kSeed, kDeterministic};
    for (const std::string& key : all_keys()) missing.insert(key);
    for (const TomlItem& item : parse_toml(text)) {
        const bool is_train = item.table == "train";
        if (item.key.empty() || (!is_train && item.table != "coarse" && item.table != "fine")) continue;
        std::string value;
        for (const std::string& part : item.values) value += (value.empty() ? "" : ",") + part;
        const std::string key = is_train ? item.key : item.table + "." + item.key;
        try {
            if (!is_train || !set_of_run(options, key, value)) set_train_option(options, key, value);
        } catch (const Error& error) {
            throw Error(ErrorCode::bad_config, Place{"", item.line}, error.message(), error.hint());
        }
        missing.erase(key);
    }
    if (!missing.empty()) throw Error(ErrorCode::bad_config, fmt::format("there is no {}", *missing.begin()));
    return options;
}

}  // namespace stipple::radiance
