#pragma once
// Gumbel subset sampling [Yang et al. 2019], trained through a frozen task.

#include <memory>

#include "stipple/learn/labels/label_data.h"
#include "stipple/learn/objective.h"

namespace stipple::learn {

/// A gumbel-subset for the task that sampling.task names: task + alpha (L_a + beta L_m + (gamma + delta m) L_b) of the
/// points that the soft choice gives, at a temperature that falls from sampling.temperature to
/// sampling.last_temperature over the run; lambda counts for nothing. Noise is a function of the seed, the step and the
/// place alone. Validation is of the points with the largest scores, without noise. As make_shape_objective().
std::unique_ptr<Objective> make_gumbel_objective(const Recipe& recipe, const LabelData& data);

}  // namespace stipple::learn
