#include "stipple/tasks/upsampling_study/cost.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <malloc.h>
#include <set>

#include "stipple/core/interrupt.h"
#include "stipple/core/profile.h"
#include "stipple/io/byte_source.h"
#include "stipple/io/text.h"
#include "stipple/network/describe.h"
#include "stipple/tasks/upsample.h"
#include "stipple/tasks/upsampling_study/methods.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks::study {
namespace {

/// With other neighbours than its own, where that is wanted; `used` becomes their number.
ModelOrEngine load_subject(const CostSubject& subject, int64_t neighbours, int64_t& used) {
    const auto load = [&](const std::map<std::string, std::string>& options) {
        if (!subject.weights.empty()) return models::load_model(find_weights(subject.weights), options);
        network::Network network = models::build_model(subject.family, options);
        network::Weights weights = network::initial_weights(network, 0);
        return models::Model{std::move(network), std::move(weights)};
    };
    ModelOrEngine source;
    source.path = subject.name;
    source.model = load({});
    const std::string option = neighbours_option(source.model->network);
    STIPPLE_REQUIRE(neighbours == 0 || !option.empty(), "{} has no number of neighbours to choose",
                    source.model->network.name);
    if (neighbours > 0) source.model = load({{option, std::to_string(neighbours)}});
    if (!option.empty() && !io::parse_number(source.model->network.config.at(option), used)) used = 0;
    return source;
}

void count_parameters(const network::Network& network, Cost& cost) {
    for (const network::Parameter& parameter : network::parameters_of(network)) {
        if (!parameter.is_trained) continue;
        int64_t numbers = 1;
        for (const int64_t extent : parameter.shape) numbers *= extent;
        cost.parameters += numbers;
        cost.stage_parameters[static_cast<size_t>(stage_of(network.name, parameter.layer))] += numbers;
    }
}

/// Of a step, which is named by its layers, the last one: where the result is.
std::string_view last_layer(std::string_view title) {
    const size_t plus = title.rfind(" + ");
    if (plus != std::string_view::npos) title.remove_prefix(plus + 3);
    return title.substr(0, title.find(' '));
}

/// Sums of a profile so far.
struct StageTimes {
    double network = 0;
    std::array<double, kStages> stages = {};
    std::array<int64_t, kStages> bytes = {};
};
StageTimes stage_times(const Profile& profile, const std::string& family) {
    StageTimes times;
    const bool has_gpu = profile.has_gpu();
    for (const ProfileRow& row : profile.rows()) {
        const double seconds = has_gpu ? row.gpu_self : row.cpu_self;
        times.network += seconds;
        if (row.depth == 0) continue;  // a run as a whole
        const auto stage = static_cast<size_t>(stage_of(family, last_layer(row.name)));
        times.stages[stage] += seconds;
        times.bytes[stage] = std::max(times.bytes[stage], row.bytes / std::max<int64_t>(1, row.calls));
    }
    return times;
}

}  // namespace

Stage stage_of(std::string_view family, std::string_view layer) {
    if (layer.starts_with("decode.") || layer.starts_with("inverse.")) return Stage::inverse;
    if (family == "puflow") return layer.starts_with("interp") ? Stage::interpolate : Stage::forward;
    // "step1.flow1.mix", "query.step1.flow1.mix" map; all else of a step is what it interpolates with.
    if (!layer.starts_with("step")) return Stage::forward;
    const size_t dot = layer.find('.');
    const std::string_view rest = dot == std::string_view::npos ? layer : layer.substr(dot + 1);
    if (rest == "moved") return Stage::inverse;
    return rest.starts_with("flow") ? Stage::forward : Stage::interpolate;
}

std::vector<CostSubject> all_families() {
    std::vector<CostSubject> subjects = {{kUpsamplerWeights, shipped_weights(kUpsamplerWeights)}};
    const std::string shipped = models::load_model(subjects[0].weights).network.name;
    for (const models::ModelEntry& entry : models::model_table()) {
        const network::Network network = models::build_model(entry.name, {});
        const bool upsamples = std::any_of(network.outputs.begin(), network.outputs.end(),
                                           [](const network::Output& output) { return output.name == "upsampled"; });
        if (upsamples && network.name != shipped) subjects.push_back({network.name, "", network.name});
    }
    return subjects;
}

Cost measure_cost(const CostSubject& subject, int64_t neighbours, const PointCloud& cloud, double ratio,
                  const std::string& device, int64_t runs) {
    using Clock = std::chrono::steady_clock;
    Cost cost;
    ModelOrEngine source = load_subject(subject, neighbours, cost.neighbours);
    cost.family = source.model->network.name;
    count_parameters(source.model->network, cost);
    const bool knows_peak = reset_peak_memory();
    Profile profile;
    Upsampler upsampler(std::move(source), {.device = device, .profile = &profile});
    const UpsampleOptions how{.ratio = ratio};
    upsample(upsampler, cloud, how);  // compiles, as large as it has to be
    StageTimes before = stage_times(profile, cost.family);
    cost.seconds = INFINITY;
    for (int64_t run = 0; run < runs; ++run) {
        check_interrupted();
        const auto begin = Clock::now();
        upsample(upsampler, cloud, how);
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        const StageTimes after = stage_times(profile, cost.family);
        if (seconds < cost.seconds) {  // all of one run, so that its stages belong together
            cost.seconds = seconds;
            cost.network_seconds = after.network - before.network;
            for (size_t s = 0; s < kStages; ++s) cost.stage_seconds[s] = after.stages[s] - before.stages[s];
        }
        before = after;
    }
    cost.stage_bytes = before.bytes;
    cost.network_bytes = upsampler.memory_bytes();
    if (knows_peak) cost.peak_bytes = peak_memory();
    return cost;
}

PointCloud sphere_points(int64_t n) {
    PointCloud cloud(n);
    for (int64_t i = 0; i < n; ++i) {  // a spiral by the golden angle
        const double z = 1 - (2 * static_cast<double>(i) + 1) / static_cast<double>(n), r = std::sqrt(1 - z * z);
        const double angle = 2.399963229728653 * static_cast<double>(i);
        const double point[3] = {r * std::cos(angle), r * std::sin(angle), z};
        for (int axis = 0; axis < 3; ++axis) cloud.positions.data()[3 * i + axis] = static_cast<float>(point[axis]);
    }
    return cloud;
}

bool reset_peak_memory() {
    ::malloc_trim(0);
    const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0) return false;
    const bool is_done = ::write(file, "5", 1) == 1;
    ::close(file);
    return is_done;
}

int64_t peak_memory() {
    try {
        io::FileSource source("/proc/self/status");
        io::ByteReader reader(source);
        while (const auto line = reader.line()) {
            std::string_view rest = *line;
            if (io::next_word(rest) != "VmHWM:") continue;
            int64_t kibibytes = 0;
            if (io::parse_number(io::next_word(rest), kibibytes)) return 1024 * kibibytes;
        }
    } catch (const Error&) {  // a system without it
    }
    return 0;
}

}  // namespace stipple::tasks::study
