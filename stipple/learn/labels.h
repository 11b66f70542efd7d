#pragma once
// Classification of clouds and segmentation of points: data sets with labels, cross entropy, accuracy and part IoU.

#include <memory>

#include "stipple/core/progress.h"
#include "stipple/learn/objective.h"
#include "stipple/learn/recipe.h"

namespace stipple::learn {

/// Reads the data of the recipe and splits it. Throws as load_data_set, and Error{bad_config} where the recipe does not
/// fit the data: a task that wants labels or parts that are not there, nothing left to train on.
std::unique_ptr<Objective> make_label_objective(const Recipe& recipe, std::vector<std::string>& warnings,
                                                ProgressMode progress);

}  // namespace stipple::learn
