#include "stipple/tasks/sampling_study/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stipple/core/error.h"

namespace stipple::tasks::study {
namespace {

struct SamplingMethodRow {
    SamplingMethod method;
    const char *name, *title;
    bool is_trained, has_prefixes;
};
constexpr SamplingMethodRow kSamplingMethods[] = {
    {SamplingMethod::all, "all", "all points", false, true},
    {SamplingMethod::random, "random", "random", false, true},
    {SamplingMethod::fps, "fps", "FPS", false, true},
    {SamplingMethod::voxel, "voxel", "voxel", false, false},
    {SamplingMethod::critical, "critical", "critical points", false, true},
    {SamplingMethod::gumbel, "gumbel", "Gumbel subset", true, false},
    {SamplingMethod::snet, "snet", "S-NET", true, false},
    {SamplingMethod::samplenet, "samplenet", "SampleNet", true, false},
    {SamplingMethod::progressive, "progressive", "SampleNet progressive", true, true},
};

const SamplingMethodRow& row_of(SamplingMethod method) {
    return kSamplingMethods[static_cast<size_t>(method)];
}

}  // namespace

const std::vector<SamplingTask>& sampling_tasks() {
    static const std::vector<SamplingTask> tasks = {SamplingTask::classification, SamplingTask::registration,
                                                    SamplingTask::reconstruction};
    return tasks;
}

const char* name_of(SamplingTask task) {
    constexpr const char* kNames[] = {"cls", "reg", "rec"};
    return kNames[static_cast<size_t>(task)];
}

const char* title_of(SamplingTask task) {
    constexpr const char* kTitles[] = {"classification", "registration", "reconstruction"};
    return kTitles[static_cast<size_t>(task)];
}

SamplingTask sampling_task_by_name(std::string_view name) {
    for (const SamplingTask task : sampling_tasks())
        if (name == name_of(task)) return task;
    throw Error(ErrorCode::bad_argument, fmt::format("there is no task \"{}\"; there are cls, reg, rec", name));
}

const std::vector<SamplingMethod>& sampling_methods() {
    static const std::vector<SamplingMethod> methods = [] {
        std::vector<SamplingMethod> all;
        for (const SamplingMethodRow& row : kSamplingMethods)
            if (row.method != SamplingMethod::all) all.push_back(row.method);
        return all;
    }();
    return methods;
}

const char* name_of(SamplingMethod method) {
    return row_of(method).name;
}

const char* title_of(SamplingMethod method) {
    return row_of(method).title;
}

SamplingMethod sampling_method_by_name(std::string_view name) {
    std::vector<std::string> names;
    for (const SamplingMethod method : sampling_methods()) {
        if (name == name_of(method)) return method;
        names.emplace_back(name_of(method));
    }
    throw Error(ErrorCode::bad_argument,
                fmt::format("there is no method \"{}\"; there are {}", name, fmt::join(names, ", ")));
}

bool is_trained(SamplingMethod method) {
    return row_of(method).is_trained;
}

bool has_prefixes(SamplingMethod method) {
    return row_of(method).has_prefixes;
}

const std::vector<TaskNetworkName>& task_networks() {
    // Plain: the recipe of the robust one without thinned clouds.
    static const std::vector<TaskNetworkName> networks = {
        {SamplingTask::classification,
         "plain",
         "pointnet-plain",
         "pointnet-cls",
         {"augment.dropout_share=0", "view.weight=0"}},
        {SamplingTask::classification, "robust", "pointnet-cls", "pointnet-cls", {}},
        {SamplingTask::registration, "pcrnet", "pcrnet", "pcrnet", {}},
        {SamplingTask::reconstruction, "autoencoder", "autoencoder", "autoencoder", {}},
    };
    return networks;
}

const TaskNetworkName& task_network(SamplingTask task, std::string_view network) {
    for (const TaskNetworkName& entry : task_networks())
        if (entry.task == task && entry.network == network) return entry;
    throw Error(ErrorCode::bad_argument, fmt::format("{} has no network \"{}\"", title_of(task), network));
}

std::string sampler_name(SamplingMethod method, SamplingTask task, std::string_view network, int64_t size) {
    STIPPLE_REQUIRE(is_trained(method), "{} has no weights of its own", name_of(method));
    const bool is_progressive = method == SamplingMethod::progressive;
    return fmt::format("{}-{}{}-{}", is_progressive ? "samplenet" : name_of(method), name_of(task),
                       network == "plain" ? "-plain" : "", is_progressive ? "progressive" : std::to_string(size));
}

std::string sampler_scheme() {
    std::vector<std::string> networks;
    for (const TaskNetworkName& network : task_networks()) networks.emplace_back(network.weights);
    return fmt::format(
        "Names of samplers: METHOD-TASK[-plain]-SIZE.safetensors. METHOD: samplenet, snet, gumbel. TASK:\n"
        "cls, reg, rec. SIZE: a number of points, or \"progressive\". -plain: for the plain classifier.\n"
        "So samplenet-cls-32, samplenet-cls-plain-32, snet-rec-64, samplenet-reg-progressive.\n"
        "Task networks: {}.",
        fmt::join(networks, ", "));
}

std::vector<std::string> training_of(SamplingMethod method, SamplingTask task, int64_t size,
                                     const std::string& network_weights) {
    STIPPLE_REQUIRE(is_trained(method), "{} is not trained", name_of(method));
    std::vector<std::string> arguments = {method == SamplingMethod::gumbel ? "gumbel-subset" : "samplenet", "--task",
                                          name_of(task), "--network", network_weights};
    const bool is_progressive = method == SamplingMethod::progressive;
    arguments.insert(arguments.end(), {"--count", std::to_string(is_progressive ? kProgressivePoints : size)});
    if (is_progressive) arguments.push_back("--progressive");
    if (method == SamplingMethod::snet) arguments.insert(arguments.end(), {"--set", "model.neighbours=0"});
    // The recipe of registration leaves the classes open; the protocol is of cars.
    if (task == SamplingTask::registration)
        arguments.insert(arguments.end(), {"--set", fmt::format("data.classes={}", fmt::join(classes_of(task), ","))});
    return arguments;
}

std::vector<std::string> training_of(const TaskNetworkName& network) {
    std::vector<std::string> arguments = {network.recipe};
    for (const std::string& setting : network.settings) arguments.insert(arguments.end(), {"--set", setting});
    if (network.task == SamplingTask::registration)
        arguments.insert(arguments.end(),
                         {"--set", fmt::format("data.classes={}", fmt::join(classes_of(network.task), ","))});
    return arguments;
}

const std::vector<std::string>& classes_of(SamplingTask task) {
    static const std::vector<std::string> all, cars = {"car"}, four = {"airplane", "car", "chair", "table"};
    switch (task) {
        case SamplingTask::classification: return all;
        case SamplingTask::registration: return cars;
        case SamplingTask::reconstruction: return four;
    }
    STIPPLE_ASSERT(false);
}

int64_t points_of(SamplingTask task) {
    return task == SamplingTask::reconstruction ? 2048 : 1024;
}

}  // namespace stipple::tasks::study
