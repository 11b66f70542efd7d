#pragma once
// What the study of samplers compares, and how the weights that it needs are called and trained. Everything that is a
// name of a file is here.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/models/samplenet.h"

namespace stipple::tasks::study {

enum class SamplingTask { classification, registration, reconstruction };

const std::vector<SamplingTask>& sampling_tasks();
/// "cls", "reg", "rec", as `stipple train samplenet --task` has them.
const char* name_of(SamplingTask task);
/// "classification" and so on.
const char* title_of(SamplingTask task);
/// Throws Error{bad_argument} that lists the names.
SamplingTask sampling_task_by_name(std::string_view name);

enum class SamplingMethod {
    all,          // every point: what samples are compared with
    random,       // a uniform subset
    fps,          // farthest points, from the first
    voxel,        // a point of each cell of the finest grid with at most m occupied ones, completed by farthest points
    critical,     // those that win most channels of a classifier's max
    gumbel,       // Gumbel subset sampling, trained for each size
    snet,         // S-NET, likewise
    samplenet,    // SampleNet, likewise
    progressive,  // one SampleNet whose beginnings serve every size
};

/// All but `all`, in the order of the tables.
const std::vector<SamplingMethod>& sampling_methods();
const char* name_of(SamplingMethod method);
const char* title_of(SamplingMethod method);
/// Throws Error{bad_argument} that lists the names.
SamplingMethod sampling_method_by_name(std::string_view name);
/// Has weights of its own, trained for the task.
bool is_trained(SamplingMethod method);
/// The first j points of a sample are the sample of j points: one run serves all sizes.
bool has_prefixes(SamplingMethod method);

/// A network that solves a task.
struct TaskNetworkName {
    SamplingTask task;
    const char* network;  // "robust": in rows and tables
    const char* weights;  // "pointnet-cls": the file, and what is looked for among the installed weights
    const char* recipe;
    std::vector<std::string> settings;  // of the recipe
};
/// Of classification two: plain, which saw full clouds only while it was trained, and robust. In the order of the
/// tables.
const std::vector<TaskNetworkName>& task_networks();
/// Throws Error{bad_argument} for a name that there is not.
const TaskNetworkName& task_network(SamplingTask task, std::string_view network);

/// Points that a progressive sampler has.
inline constexpr int64_t kProgressivePoints = 256;

/// The name of a sampler's weights, without extension: METHOD-TASK[-plain]-SIZE, "samplenet-cls-plain-32",
/// "samplenet-reg-progressive". `network` is that of the task network.
std::string sampler_name(SamplingMethod method, SamplingTask task, std::string_view network, int64_t size);
/// The scheme in a few lines, for people.
std::string sampler_scheme();

/// Arguments of `stipple train` that train a sampler for a frozen network, without data, seed and folder.
std::vector<std::string> training_of(SamplingMethod method, SamplingTask task, int64_t size,
                                     const std::string& network_weights);
/// Likewise a task network.
std::vector<std::string> training_of(const TaskNetworkName& network);

/// Classes of a task's test clouds; empty: all.
const std::vector<std::string>& classes_of(SamplingTask task);
/// Points of a cloud: the first so many.
int64_t points_of(SamplingTask task);

}  // namespace stipple::tasks::study
