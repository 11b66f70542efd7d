#pragma once
// What others have reached on the same inputs: published checkpoints, run by their own programs on 14 shapes of the
// PU-GAN test set and scored by the same ruler (one draw of the input, float64). Facts, not results of this program.

#include <span>
#include <string_view>

#include "stipple/tasks/upsampling_study/scores.h"

namespace stipple::tasks::study {

/// The measured table these values come from.
inline constexpr std::string_view kPublishedSource =
    "published checkpoints run by their own programs, 14 shapes of the PU-GAN test set, one draw, protocol of PU-GAN";

/// Rows for an input: "c" (even, independent truth), "cs" (the same against the given truth), "r" (random points of the
/// given truth), "x16" (as c in two passes). None for any other.
std::vector<Mean> published_for(std::string_view input);

/// Whether all shapes are among those that the values are of; else they say nothing about a study.
bool are_published_shapes(const std::vector<Shape>& shapes);

}  // namespace stipple::tasks::study
