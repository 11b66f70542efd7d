#include "stipple/cli/radiance/train_keys.h"

#include <fmt/format.h>

#include <variant>

#include "stipple/core/nearest_name.h"
#include "stipple/core/quoted.h"
#include "stipple/io/text.h"

namespace stipple::cli {
namespace {

using radiance::StageOptions;
using radiance::TrainOptions;

template <class Options>
struct TrainKey {
    const char* name;
    std::variant<int Options::*, int64_t Options::*, float Options::*, bool Options::*, std::vector<int> Options::*>
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
                                             {"world_bound_scale", &TrainOptions::world_bound_scale},
                                             {"environment_side", &TrainOptions::environment_side},
                                             {"half_network", &TrainOptions::half_network},
                                             {"profile_steps", &TrainOptions::profile_steps},
                                             {"jitter", &TrainOptions::jitter},
                                             {"occupancy_returns", &TrainOptions::occupancy_returns}};

[[noreturn]] void refuse(const std::string& key, const std::string& value, const char* expected) {
    throw Error(ErrorCode::bad_argument, fmt::format("--set {}: expected {}, got {}", key, expected, in_quotes(value)));
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

}  // namespace

void set_train_option(TrainOptions& options, const std::string& assignment) {
    const size_t equals = assignment.find('=');
    STIPPLE_REQUIRE(equals != std::string::npos, "--set {}: expected KEY=VALUE", in_quotes(assignment));
    const std::string key = assignment.substr(0, equals), value = assignment.substr(equals + 1);
    const size_t dot = key.find('.');
    const std::string stage = key.substr(0, dot == std::string::npos ? 0 : dot),
                      name = dot == std::string::npos ? key : key.substr(dot + 1);
    const bool is_set = stage == "coarse" ? set_by_name(kStageKeys, options.coarse, name, key, value)
                        : stage == "fine" ? set_by_name(kStageKeys, options.fine, name, key, value)
                        : stage.empty()   ? set_by_name(kTrainKeys, options, name, key, value)
                                          : false;
    if (is_set) return;
    const std::string near = nearest_name(key, all_keys());
    throw Error(ErrorCode::bad_argument, fmt::format("--set: there is no key {}", in_quotes(key)),
                near.empty() ? "keys are those of docs/radiance.md" : fmt::format("did you mean {}?", near));
}

std::string train_keys_text() {
    std::string stages, others;
    for (const auto& key : kStageKeys) stages += fmt::format("{}{}", stages.empty() ? "" : ", ", key.name);
    for (const auto& key : kTrainKeys) others += fmt::format("{}{}", others.empty() ? "" : ", ", key.name);
    return fmt::format("Keys of coarse. and fine.: {}\nOther keys: {}", stages, others);
}

}  // namespace stipple::cli
