#include "stipple/learn/task.h"

#include "stipple/learn/labels/labels.h"
#include "stipple/learn/sampling/sampling.h"
#include "stipple/learn/upsampling/pair_patches.h"
#include "stipple/learn/upsampling/upsampling.h"

namespace stipple::learn {

LoadedTask load_task(const Recipe& recipe, std::vector<std::string>& warnings, ProgressMode progress) {
    LoadedTask task;
    if (recipe.task == TrainingTask::upsampling) {
        if (recipe.data.folder.empty())
            throw Error(ErrorCode::bad_argument, "no meshes to train on",
                        "name a folder of meshes or scans, or a file of patches, with --data");
        const SurfaceOptions options = {.held_out = recipe.data.held_out,
                                        .pools = recipe.patch.pools,
                                        .samples = recipe.patch.samples,
                                        .scans = recipe.patch.scans,
                                        .region = recipe.patch.region,
                                        .seed = recipe.run.seed};
        task.surfaces = std::make_unique<SurfaceSet>(
            names_pairs(recipe.data.folder) ? load_pairs(recipe.data.folder, recipe.data.held_out, warnings, progress)
                                            : load_surfaces(recipe.data.folder, options, warnings, progress));
        task.objective = make_upsampling_objective(recipe, *task.surfaces);
    } else {
        task.labels = std::make_unique<LabelData>(load_label_data(recipe, warnings, progress));
        task.objective = is_shape_task(recipe) ? make_shape_objective(recipe, *task.labels)
                                               : make_label_objective(recipe, *task.labels);
    }
    return task;
}

}  // namespace stipple::learn
