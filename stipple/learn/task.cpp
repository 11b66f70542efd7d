#include "stipple/learn/task.h"

#include "stipple/learn/labels.h"
#include "stipple/learn/upsampling.h"

namespace stipple::learn {

LoadedTask load_task(const Recipe& recipe, std::vector<std::string>& warnings, ProgressMode progress) {
    LoadedTask task;
    if (recipe.task == "upsampling") {
        if (recipe.data.folder.empty())
            throw Error(ErrorCode::bad_argument, "no meshes to train on", "name a folder with --data");
        task.surfaces = std::make_unique<SurfaceSet>(load_surfaces(recipe.data.folder,
                                                                   {.held_out = recipe.data.held_out,
                                                                    .pools = recipe.patch.pools,
                                                                    .samples = recipe.patch.samples,
                                                                    .seed = recipe.run.seed},
                                                                   warnings, progress));
        task.objective = make_upsampling_objective(recipe, *task.surfaces);
    } else {
        task.labels = std::make_unique<LabelData>(load_label_data(recipe, warnings, progress));
        task.objective = make_label_objective(recipe, *task.labels);
    }
    return task;
}

}  // namespace stipple::learn
