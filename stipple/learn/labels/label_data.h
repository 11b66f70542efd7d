#pragma once
// Data of a recipe whose items have labels: what is trained on and what is held out. No torch here.

#include <optional>

#include "stipple/core/progress.h"
#include "stipple/data/data_set.h"
#include "stipple/learn/recipe.h"

namespace stipple::learn {

struct LabelData {
    data::DataSet set;                        // with all stored points, of which data.points are trained on
    std::optional<data::DataSet> validation;  // a split of its own, where the recipe names one
    std::vector<int64_t> train;               // items of `set`
    std::vector<int64_t> held_out;            // items of evaluated(), which are not trained on; may be none

    const data::DataSet& evaluated() const { return validation ? *validation : set; }
};

/// Reads what the recipe names, normalises it where it says so, and splits it: data.held_out takes every n-th item of
/// each class, so that rare ones are in both. Throws as load_data_set, and Error{bad_config} where the recipe does not
/// fit the data: no labels, no parts, no such class, fewer than two items to train on.
LabelData load_label_data(const Recipe& recipe, std::vector<std::string>& warnings, ProgressMode progress);

}  // namespace stipple::learn
