#pragma once
// The inputs of each study.

#include "stipple/tasks/upsampling_study/inputs.h"

namespace stipple::tasks::study {

/// Noise of 0, 0.5, 1 and 1.5 % of the radius.
std::vector<Condition> noise_conditions();
/// 512, 1024, 2048 and 4096 points.
std::vector<Condition> density_conditions();
/// Ratios of 2, 3.7, 4, 8 and 16.
std::vector<Condition> ratio_conditions();
/// The networks' own number of neighbours, for all methods, then 4, 6, 8, 12 and 16 for the networks.
std::vector<Condition> neighbour_conditions();
/// Even, random, with a gradient of density, and with a thin region.
std::vector<Condition> nonuniform_conditions();
/// The three inputs of the usual protocol: "c", "cs" and "r".
std::vector<Condition> ablation_conditions();

}  // namespace stipple::tasks::study
