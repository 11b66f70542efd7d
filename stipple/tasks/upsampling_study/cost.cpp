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

ModelOrEngine load_with_neighbours(const std::string& weights, int64_t neighbours, int64_t& used) {
    ModelOrEngine source;
    source.path = find_weights(weights);
    source.model = models::load_model(source.path);
    const std::string option = neighbours_option(source.model->network);
    STIPPLE_REQUIRE(neighbours == 0 || !option.empty(), "{} has no number of neighbours to choose",
                    source.model->network.name);
    if (neighbours > 0) source.model = models::load_model(source.path, {{option, std::to_string(neighbours)}});
    if (!option.empty() && !io::parse_number(source.model->network.config.at(option), used)) used = 0;
    return source;
}

ModelOrEngine copy_of(const ModelOrEngine& source) {
    ModelOrEngine copy;
    copy.path = source.path;
    copy.model = models::Model{source.model->network, source.model->weights};
    return copy;
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

void add_stages(const Profile& profile, Cost& cost) {
    const bool has_gpu = profile.has_gpu();
    for (const ProfileRow& row : profile.rows()) {
        const double seconds = has_gpu ? row.gpu_self : row.cpu_self;
        cost.network_seconds += seconds;
        if (row.depth == 0) continue;  // a run as a whole
        const auto stage = static_cast<size_t>(stage_of(cost.family, last_layer(row.name)));
        cost.stage_seconds[stage] += seconds;
        cost.stage_bytes[stage] = std::max(cost.stage_bytes[stage], row.bytes / std::max<int64_t>(1, row.calls));
    }
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

Cost measure_cost(const std::string& weights, int64_t neighbours, const PointCloud& cloud, double ratio,
                  const std::string& device, int64_t runs) {
    using Clock = std::chrono::steady_clock;
    Cost cost;
    const ModelOrEngine source = load_with_neighbours(weights, neighbours, cost.neighbours);
    cost.family = source.model->network.name;
    count_parameters(source.model->network, cost);
    const UpsampleOptions how{.ratio = ratio};
    // Without a profile, whose clock costs something itself: the time and memory of the whole.
    const bool knows_peak = reset_peak_memory();
    {
        Upsampler upsampler(copy_of(source), {.device = device});
        cost.seconds = INFINITY;
        for (int64_t run = 0; run <= runs; ++run) {
            check_interrupted();
            const auto begin = Clock::now();
            upsample(upsampler, cloud, how);
            const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
            if (run > 0) cost.seconds = std::min(cost.seconds, seconds);  // the first compiles
        }
        cost.network_bytes = upsampler.runner().memory_bytes();
        if (knows_peak) cost.peak_bytes = peak_memory();
    }
    // With a profile, a new one for each run: that of the fastest counts, so that its stages belong together.
    Cost best;
    for (int64_t run = 0; run < runs; ++run) {
        check_interrupted();
        Profile profile;
        Upsampler upsampler(copy_of(source), {.device = device, .profile = &profile});
        upsample(upsampler, cloud, how);
        Cost found;
        found.family = cost.family;
        add_stages(profile, found);
        if (run == 0 || found.network_seconds < best.network_seconds) best = found;
    }
    cost.network_seconds = best.network_seconds;
    cost.stage_seconds = best.stage_seconds, cost.stage_bytes = best.stage_bytes;
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
