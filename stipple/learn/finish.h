#pragma once
// What trained weights carry beside their numbers: the card that says where they come from, of classifiers how much
// their answers are worth, and of autoencoders which clouds they cannot rebuild.

#include "stipple/learn/labels/label_data.h"
#include "stipple/learn/train.h"

namespace stipple::learn {

struct FinishOptions {
    std::string command, commit;  // for the card
    std::string device = "cpu";   // that the network is measured on
    ProgressMode progress = ProgressMode::automatic;
};

/// Adds them to report.weights, which is replaced at once. The confidence of classifiers is fitted on the clouds that
/// were trained on (tasks/fit_confidence.h); the likeness of autoencoders (tasks/likeness.h) on those that were held
/// out, where there are a hundred or more, else on those that were trained on; the names of their classes come with it.
/// A split of its own that was evaluated is not looked at. data: null where the task has none. Where it cannot be
/// fitted, a warning says why.
void finish_weights(const Recipe& recipe, const LabelData* data, TrainReport& report, const FinishOptions& options);

}  // namespace stipple::learn
