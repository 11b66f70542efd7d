#include "stipple/learn/sampling/sampling_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"

namespace stipple::learn {
namespace {

void require_number(const char* key, double value, double most) {
    if (!(value >= 0 && value <= most))
        throw Error(ErrorCode::bad_config, fmt::format("{} must be 0 to {}", key, most));
}

}  // namespace

const std::vector<std::string>& sampling_task_names() {
    static const std::vector<std::string> names = {"classification", "segmentation", "registration", "reconstruction"};
    return names;
}

std::optional<SamplingTask> sampling_task(const SamplingOptions& options) {
    const std::vector<std::string>& names = sampling_task_names();
    const auto found = std::find(names.begin(), names.end(), options.task);
    if (found == names.end()) return {};
    return static_cast<SamplingTask>(found - names.begin());
}

std::vector<int64_t> sampled_sizes(int64_t smallest, int64_t count, bool is_progressive) {
    std::vector<int64_t> sizes;
    for (int64_t size = smallest; is_progressive && size < count; size *= 2) sizes.push_back(size);
    sizes.push_back(count);
    return sizes;
}

void validate(const SamplingOptions& options) {
    if (!options.task.empty() && !sampling_task(options))
        throw Error(ErrorCode::bad_config,
                    fmt::format("sampling.task must be one of {}", fmt::join(sampling_task_names(), ", ")));
    require_number("sampling.alpha", options.alpha, 1e9);
    require_number("sampling.beta", options.beta, 1e9);
    require_number("sampling.gamma", options.gamma, 1e9);
    require_number("sampling.delta", options.delta, 1e9);
    require_number("sampling.lambda", options.lambda, 1e9);
    require_number("sampling.teacher", options.teacher, 1);
    if (options.smallest < 1 || options.smallest > 65536)
        throw Error(ErrorCode::bad_config, "sampling.smallest must be 1 to 65536");
    // Lower ones make softmax a choice between ties, and its gradients 0 or huge.
    const auto is_temperature = [](double t) { return t >= 1e-3 && t <= 1e3; };
    if (!is_temperature(options.temperature) || !is_temperature(options.last_temperature))
        throw Error(ErrorCode::bad_config, "sampling.temperature and last_temperature must be 0.001 to 1000");
}

void validate(const PoseOptions& options) {
    require_number("pose.angle", options.angle, 180);
    require_number("pose.shift", options.shift, 1e9);
    require_number("pose.rotation_weight", options.rotation_weight, 1e9);
    require_number("pose.translation_weight", options.translation_weight, 1e9);
    require_number("pose.chamfer_weight", options.chamfer_weight, 1e9);
}

void validate(const ThinOptions& options) {
    require_number("thin.share", options.share, 1);
    if (options.least < 1 || options.least > 65536) throw Error(ErrorCode::bad_config, "thin.least must be 1 to 65536");
}

}  // namespace stipple::learn
