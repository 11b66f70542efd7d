#include "stipple/learn/labels/label_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/geometry/sample_surface.h"

namespace stipple::learn {
namespace {

using data::DataSet;

[[noreturn]] void misfit(const std::string& message) {
    throw Error(ErrorCode::bad_config, message);
}

DataSet load(const Recipe& recipe, const std::string& split, std::vector<std::string>& warnings, ProgressMode mode) {
    data::DataSetOptions options;
    options.split = split;
    options.layout = recipe.data.layout;
    options.seed = recipe.run.seed;
    options.sampler = [&](const Mesh& mesh, int64_t, uint64_t seed) {
        return geometry::cloud_of_samples(mesh, geometry::sample_surface(mesh, recipe.data.mesh_points, seed));
    };
    std::optional<Progress> progress;
    options.on_progress = [&](int64_t done, int64_t total) {
        if (!progress) progress.emplace("read " + (split.empty() ? "data" : split), total, mode, "files");
        if (done > 0) progress->add();
    };
    DataSet set = data::load_data_set(recipe.data.folder, options, warnings);
    if (recipe.data.normalise) data::to_unit_spheres(set.clouds);
    return set;
}

/// Which of the set's classes data.classes names; all where it is empty.
std::vector<char> named_classes(const Recipe& recipe, const DataSet& set) {
    std::vector<char> is_named(set.classes.size(), recipe.data.classes.empty());
    if (recipe.data.classes.empty()) return is_named;
    const std::string names = recipe.data.classes + ",";
    for (size_t begin = 0, end = 0; (end = names.find(',', begin)) != std::string::npos; begin = end + 1) {
        const std::string name = names.substr(begin, end - begin);
        const auto found = std::find(set.classes.begin(), set.classes.end(), name);
        if (found == set.classes.end()) misfit(fmt::format("data.classes: the set has no class {}", name));
        is_named[static_cast<size_t>(found - set.classes.begin())] = 1;
    }
    return is_named;
}

std::vector<int64_t> items_of(const DataSet& set, const std::vector<char>& is_named) {
    std::vector<int64_t> items(static_cast<size_t>(set.size()));
    std::iota(items.begin(), items.end(), 0);
    if (!set.labels.empty())
        std::erase_if(items, [&](int64_t item) { return !is_named[static_cast<size_t>(set.labels[item])]; });
    return items;
}

}  // namespace

LabelData load_label_data(const Recipe& recipe, std::vector<std::string>& warnings, ProgressMode progress) {
    if (recipe.data.folder.empty())
        throw Error(ErrorCode::bad_argument, "no data to train on", "name a folder with --data");
    LabelData data;
    data.set = load(recipe, recipe.data.split, warnings, progress);
    const bool needs_parts = recipe.task == TrainingTask::segmentation ||
                             (recipe.task == TrainingTask::sampling && recipe.sampling.task == "segmentation");
    if (needs_parts && data.set.parts.empty())
        misfit(fmt::format("{}: segmentation needs parts; layout {} has none", recipe.data.folder, data.set.layout));
    const bool needs_classes = recipe.task == TrainingTask::classification || recipe.task == TrainingTask::sampling;
    if (needs_classes && data.set.labels.empty())
        misfit(fmt::format("{}: {} needs classes; layout {} has none", recipe.data.folder, name_of(recipe.task),
                           data.set.layout));
    const std::vector<char> is_named = named_classes(recipe, data.set);
    const std::vector<int64_t> items = items_of(data.set, is_named);
    if (!recipe.data.validation.empty()) {
        data.validation = load(recipe, recipe.data.validation, warnings, progress);
        if (data.validation->classes != data.set.classes)
            misfit(fmt::format("{}: split {} has other classes", recipe.data.folder, recipe.data.validation));
        data.held_out = items_of(*data.validation, is_named);
        data.train = items;
    } else {
        const int64_t every =
            recipe.data.held_out > 0 ? std::max<int64_t>(2, std::llround(1 / recipe.data.held_out)) : 0;
        std::map<int32_t, int64_t> seen;  // by class
        for (const int64_t item : items) {
            const int64_t rank = seen[data.set.labels.empty() ? 0 : data.set.labels[item]]++;
            (every > 0 && rank % every == every / 2 ? data.held_out : data.train).push_back(item);
        }
    }
    if (data.train.size() < 2) misfit(fmt::format("{}: {} items to train on", recipe.data.folder, data.train.size()));
    return data;
}

}  // namespace stipple::learn
