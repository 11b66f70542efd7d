#include "stipple/learn/sampling/sampling_options.h"

#include <cmath>

#include "stipple/core/error.h"

namespace stipple::learn {
namespace {

void require_number(const char* key, double value, double most) {
    if (!(value >= 0 && value <= most))
        throw Error(ErrorCode::bad_config, fmt::format("{} must be 0 to {}", key, most));
}

}  // namespace

std::vector<int64_t> sampled_sizes(int64_t smallest, int64_t count, bool is_progressive) {
    std::vector<int64_t> sizes;
    for (int64_t size = smallest; is_progressive && size < count; size *= 2) sizes.push_back(size);
    sizes.push_back(count);
    return sizes;
}

void validate(const SamplingOptions& options) {
    require_number("sampling.alpha", options.alpha, 1e9);
    require_number("sampling.beta", options.beta, 1e9);
    require_number("sampling.gamma", options.gamma, 1e9);
    require_number("sampling.delta", options.delta, 1e9);
    require_number("sampling.lambda", options.lambda, 1e9);
    require_number("sampling.teacher", options.teacher, 1);
    if (options.smallest < 1 || options.smallest > 65536)
        throw Error(ErrorCode::bad_config, "sampling.smallest must be 1 to 65536");
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
