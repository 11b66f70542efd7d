#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "stipple/core/error.h"
#include "stipple/core/toml.h"
#include "stipple/radiance/train_keys.h"

namespace stipple::radiance {
namespace {

constexpr double kMostGridVoxels = static_cast<double>(int64_t{1} << 40);

/// Those of a run, which the command line has options of its own for, come first in train_fields().
constexpr int kRunFields = 3;

/// What --set may name.
const Fields& settable_fields() {
    static const Fields fields(train_fields().begin() + kRunFields, train_fields().end());
    return fields;
}

std::string names_of(const Fields& fields) {
    std::string names;
    for (const stipple::Field& field : fields)
        if (!field.nested) names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
    return names;
}

}  // namespace

const Fields& stage_fields() {
    using Stage = StageOptions;
    static const Fields fields = {
        field<&Stage::N_iters>("N_iters", "Steps").from(0),
        field<&Stage::N_rand>("N_rand", "Rays of a step").from(0),
        field<&Stage::num_voxels>("num_voxels", "Voxels of the finished grid").between(0, kMostGridVoxels),
        field<&Stage::num_voxels_base>("num_voxels_base", "Opacities are counted in voxels of a grid of so many")
            .between(0, kMostGridVoxels),
        field<&Stage::alpha_init>("alpha_init", "Opacity of a voxel at the start"),
        field<&Stage::lrate_density>("lrate_density", "Learning rate of densities"),
        field<&Stage::lrate_features>("lrate_features", "Learning rate of colour features"),
        field<&Stage::lrate_network>("lrate_network", "Learning rate of the colour network"),
        field<&Stage::lrate_environment>("lrate_environment", "Learning rate of a background that is learned"),
        field<&Stage::lrate_decay>("lrate_decay", "Thousands of steps in which rates fall to a tenth").from(0),
        field<&Stage::weight_entropy_last>("weight_entropy_last", "Weight of the entropy of what rays pass"),
        field<&Stage::weight_rgbper>("weight_rgbper", "Weight of the colour of each sample"),
        field<&Stage::weight_tv_density>("weight_tv_density", "Weight of differences of neighbouring densities"),
        field<&Stage::weight_tv_features>("weight_tv_features", "Weight of differences of neighbouring features"),
        field<&Stage::fast_color_thres>("fast_color_thres", "Opacities and weights up to it are skipped"),
        field<&Stage::pg_scale>("pg_scale", "Steps at which the number of voxels doubles").from(0),
        field<&Stage::stepsize>("stepsize", "Of rays, in voxels").unit("voxels"),
        field<&Stage::refresh>("refresh", "Steps between looks at which nodes are opaque").from(0)};
    return fields;
}

const Fields& train_fields() {
    using Train = TrainOptions;
    static const Fields fields = {
        field<&Train::background>("background", "What lies behind everything").words(kBackgroundWords),
        field<&Train::seed>("seed", "Of all random numbers"),
        field<&Train::deterministic>("deterministic", "The same bits in every run, for some time more"),
        field<&Train::bbox_thres>("bbox_thres", "Opacity of a voxel that counts as occupied after the coarse stage"),
        field<&Train::bbox_seen>("bbox_seen", "Its weight in some pixel, at least"),
        field<&Train::world_bound_scale>("world_bound_scale", "How much larger the fine box is than what is occupied"),
        field<&Train::environment_side>("environment_side", "Texels of an edge of a background that is learned")
            .from(0),
        field<&Train::half_network>("half_network", "On a GPU: the colour network in half precision"),
        field<&Train::profile_steps>("profile_steps", "On a GPU: so many more steps, timed part by part").from(0),
        field<&Train::jitter>("jitter", "Rays begin anywhere within their first step"),
        field<&Train::occupancy_returns>("occupancy_returns", "Nodes that were freed may become occupied again"),
        field<&Train::path>("path", "On a GPU: how a fine step is computed").words(kStepPathWords),
        object_field<&Train::coarse>("coarse", stage_fields, "The coarse stage"),
        object_field<&Train::fine>("fine", stage_fields, "The fine stage")};
    return fields;
}

const Fields& train_times_fields() {
    using Times = TrainTimes;
    static const auto sample_fields = []() -> const Fields& {
        static const Fields fields = {field<&Times::in_box>("in_box", "Of a fine step, in the box"),
                                      field<&Times::in_mask>("in_mask", "In occupied space"),
                                      field<&Times::opaque>("opaque", "Opaque"),
                                      field<&Times::kept>("kept", "That got a colour")};
        return fields;
    };
    static const Fields fields = [] {
        Fields made = {field<&Times::box>("box", "Finding the box").unit("s"),
                       field<&Times::coarse_setup>("coarse_setup", "Before the coarse stage").unit("s"),
                       field<&Times::coarse>("coarse", "The coarse stage").unit("s"),
                       field<&Times::fine_setup>("fine_setup", "Before the fine stage").unit("s"),
                       field<&Times::fine>("fine", "The fine stage").unit("s"),
                       field<&Times::pack>("pack", "Packing the field").unit("s"),
                       field<&Times::checkpoints>("checkpoints", "Writing checkpoints").unit("s"),
                       field<&Times::test_views>("test_views", "Rendering test views").unit("s"),
                       field<&Times::ms_per_fine_step>("ms_per_fine_step", "A fine step, of the last ones").unit("ms"),
                       field<&Times::peak_bytes>("peak_bytes", "Memory of own arrays on the device").unit("bytes")};
        stipple::Field samples{.name = "samples", .help = "Of a fine step, mean", .type = FieldType::object};
        samples.address = [](void* times) { return times; };  // they are members of the same struct
        samples.nested = sample_fields;
        made.push_back(samples);
        return made;
    }();
    return fields;
}

void set_train_option(TrainOptions& options, const std::string& key, const std::string& value) {
    std::vector<std::string> values;
    for (size_t at = 0; at < value.size();) {
        const size_t end = std::min(value.find(',', at), value.size());
        values.push_back(value.substr(at, end - at));
        at = end + 1;
    }
    try {
        set_by_key(settable_fields(), &options, key, values);
    } catch (const Error& error) {
        const bool has_hint = !error.hint().empty() || find_field(settable_fields(), &options, key).first;
        throw Error(error.code(), error.message(), has_hint ? error.hint() : "keys are those of docs/radiance.md");
    }
}

std::string train_keys_text() {
    return fmt::format("Keys of coarse. and fine.: {}\nOther keys: {}", names_of(stage_fields()),
                       names_of(settable_fields()));
}

std::string to_toml(const TrainOptions& options) {
    return "[train]\n" + to_toml(train_fields(), &options);
}

TrainOptions train_options_from_toml(std::string_view text) {
    TrainOptions options;
    const std::vector<std::string> keys = keys_of(train_fields());
    std::set<std::string> missing(keys.begin(), keys.end());
    for (const TomlItem& item : parse_toml(text)) {
        const bool is_train = item.table == "train";
        if (item.key.empty() || (!is_train && item.table != "coarse" && item.table != "fine")) continue;
        const std::string key = is_train ? item.key : item.table + "." + item.key;
        try {
            set_by_key(train_fields(), &options, key, item.values);
        } catch (const Error& error) {
            throw Error(ErrorCode::bad_config, Place{"", item.line}, error.message(), error.hint());
        }
        missing.erase(key);
    }
    if (!missing.empty()) throw Error(ErrorCode::bad_config, fmt::format("there is no {}", *missing.begin()));
    return options;
}

}  // namespace stipple::radiance
