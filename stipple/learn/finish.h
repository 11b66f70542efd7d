#pragma once
// What trained weights carry beside their numbers: the card that says where they come from, and, of classifiers, how
// much their answers are worth.

#include "stipple/data/data_set.h"
#include "stipple/learn/recipe.h"
#include "stipple/learn/train.h"

namespace stipple::learn {

struct FinishOptions {
    std::string command, commit;  // for the card
    std::string device = "cpu";   // that the classifier is measured on
    ProgressMode progress = ProgressMode::automatic;
};

/// Adds both to report.weights, which is replaced at once. The confidence is fitted on the clouds that were trained on
/// (tasks/fit_confidence.h), which are null where they have no classes; where it cannot be fitted, a warning says why.
void finish_weights(const Recipe& recipe, const data::DataSet* trained_on, TrainReport& report,
                    const FinishOptions& options);

}  // namespace stipple::learn
