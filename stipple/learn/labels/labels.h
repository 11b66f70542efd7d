#pragma once
// Classification of clouds and segmentation of points: data sets with labels, cross entropy, accuracy and part IoU.

#include <memory>

#include "stipple/learn/labels/label_data.h"
#include "stipple/learn/objective.h"

namespace stipple::learn {

/// Trains on data.train and evaluates data.held_out; the data must outlive it. Throws Error{bad_config} where the
/// recipe's model does not fit the data.
std::unique_ptr<Objective> make_label_objective(const Recipe& recipe, const LabelData& data);

}  // namespace stipple::learn
