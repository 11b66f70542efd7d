#pragma once
// What a recipe's task needs to be trained: its data, and the objective over them.

#include <memory>

#include "stipple/learn/labels/label_data.h"
#include "stipple/learn/objective.h"
#include "stipple/learn/upsampling/surface_patches.h"

namespace stipple::learn {

struct LoadedTask {
    std::unique_ptr<const LabelData> labels;     // of every task but upsampling, else null
    std::unique_ptr<const SurfaceSet> surfaces;  // or pairs: upsampling, else null
    std::unique_ptr<Objective> objective;        // over one of them; never null
};

/// Reads the data that the recipe names: for upsampling pairs of patches where names_pairs() says so, else the meshes
/// or scans of a folder. Throws as load_label_data and make_label_objective, or as load_pairs, load_surfaces and
/// make_upsampling_objective.
LoadedTask load_task(const Recipe& recipe, std::vector<std::string>& warnings, ProgressMode progress);

}  // namespace stipple::learn
