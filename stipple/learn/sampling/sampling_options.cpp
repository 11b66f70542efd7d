#include "stipple/learn/sampling/sampling_options.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "stipple/core/error.h"

namespace stipple::learn {
namespace {

constexpr double kMostWeight = 1e9;

}  // namespace

const Fields& sampling_fields() {
    using Options = SamplingOptions;
    static const Fields fields = {
        field<&Options::task>("task", "What sampled points are for; empty: what the samplenet's shape tells"),
        field<&Options::network>("network", "Frozen weights of the task; empty: those shipped for it"),
        field<&Options::alpha>("alpha", "The weight of the distances between sampled points and cloud")
            .between(0, kMostWeight),
        field<&Options::beta>("beta", "Among them: of the largest from a sampled point to the cloud")
            .between(0, kMostWeight),
        field<&Options::gamma>("gamma", "Among them: of those from the cloud to sampled points")
            .between(0, kMostWeight),
        field<&Options::delta>("delta", "What is added to gamma for each sampled point").between(0, kMostWeight),
        field<&Options::lambda>("lambda", "The weight of the soft projection's width").between(0, kMostWeight),
        field<&Options::smallest>("smallest", "Progressive samplers: points of the smallest beginning")
            .between(1, 65536),
        field<&Options::mean>("mean", "Progressive samplers: the loss is the mean over the beginnings, not their sum"),
        field<&Options::teacher>("teacher", "Classification: the share of the loss by the frozen network's answer")
            .between(0, 1),
        // Lower temperatures make softmax a choice between ties, and its gradients 0 or huge.
        field<&Options::temperature>("temperature", "Of a gumbel-subset: what scores are divided by at first")
            .between(1e-3, 1e3),
        field<&Options::last_temperature>("last_temperature", "Of a gumbel-subset: the same at the end of the run")
            .between(1e-3, 1e3),
        field<&Options::straight_through>("straight_through",
                                          "The task sees sampled points, with the gradients of the soft ones")};
    return fields;
}

const Fields& thin_fields() {
    using Options = ThinOptions;
    static const Fields fields = {
        field<&Options::share>("share", "The share of clouds that have fewer points").between(0, 1),
        field<&Options::least>("least", "The fewest points that are left of them").between(1, 65536)};
    return fields;
}

const Fields& pose_fields() {
    using Options = PoseOptions;
    static const Fields fields = {
        field<&Options::angle>("angle", "The largest of the three Euler angles, to both sides")
            .unit("degrees")
            .between(0, 180),
        field<&Options::shift>("shift", "The largest shift of each coordinate").between(0, 1e9),
        field<&Options::rotation_weight>("rotation_weight", "The weight of the rotation's error")
            .between(0, kMostWeight),
        field<&Options::translation_weight>("translation_weight", "The weight of the translation's error")
            .between(0, kMostWeight),
        field<&Options::chamfer_weight>("chamfer_weight", "The weight of the chamfer distance of the two clouds")
            .between(0, kMostWeight)};
    return fields;
}

std::optional<SamplingTask> sampling_task(const SamplingOptions& options) {
    if (options.task.empty()) return {};
    const auto found = std::find(std::begin(kSamplingTaskWords), std::end(kSamplingTaskWords), options.task);
    if (found == std::end(kSamplingTaskWords))
        throw Error(ErrorCode::bad_config,
                    fmt::format("sampling.task must be one of {}", fmt::join(kSamplingTaskWords, ", ")));
    return static_cast<SamplingTask>(found - std::begin(kSamplingTaskWords));
}

std::vector<int64_t> sampled_sizes(int64_t smallest, int64_t count, bool is_progressive) {
    std::vector<int64_t> sizes;
    for (int64_t size = smallest; is_progressive && size < count; size *= 2) sizes.push_back(size);
    sizes.push_back(count);
    return sizes;
}

}  // namespace stipple::learn
