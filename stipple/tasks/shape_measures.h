#pragma once
// Measures of a cloud's shape that ask no network: whether it is symmetric, how tall, how spread, whether it is more
// than a height field. A network trained on objects is sure of what it sees even when it sees a street: of PointNet,
// neither the logits nor a layer before them tell a LiDAR sweep from a guitar. These do (tasks/confidence.h).

#include <array>

#include "stipple/core/view.h"

namespace stipple::tasks {

inline constexpr int kShapeMeasures = 6;
using ShapeMeasures = std::array<double, kShapeMeasures>;

/// Of finite points [n, 3], n >= 1, as a network sees them: in the unit sphere, z up.
///
///   0, 1   height that 5 and 95 % of the points stay below
///   2, 3   asymmetry: logarithm of the mean distance from one half of the points, mirrored at an upright plane, to the
///          nearest of the other half, over that distance without the mirror; near 0 for a symmetric shape. Of the best
///          of 8 planes, and of their mean
///   4      logarithm of that distance without the mirror, times the square root of how many points a half has: large
///          for points that are spread over much surface
///   5      logarithm of the step between neighbours on the ground plan: small for a height field
///
/// 2 to 5 are of at most 512 points, chosen at random, always the same. Lengths below 0.02 count as 0.02. Turning the
/// cloud about z by 1/16 changes no plane, other angles change 2 and 3 a little. Throws Error{bad_argument} for other
/// shapes. 2 ms; O(n).
ShapeMeasures measure_shape(View<const float, 2> points);

}  // namespace stipple::tasks
