#pragma once
// Points moved down a distance that a network tells, onto the surface where it is 0.

#include <functional>
#include <vector>

#include "stipple/core/view.h"

namespace stipple::tasks {

/// Writes the distance of each of n places [n, 3] to the surface [n], in units of the spacing.
using DistanceFunction = std::function<void(View<const float, 2> places, View<float, 1> distances)>;

/// Moves points [n, 3], in units of the spacing, and returns the distances of where they end [n].
///
/// Each time a point tries x - s d(x) g / |g|, where g is the slope of d by its differences between the four corners of
/// a tetrahedron around x, on its side of the surface. Where d is smaller there it goes; else it stays, and its step s,
/// 1 at first, is halved. So no distance grows. A point stays where its distance is not finite or nothing slopes. 5
/// calls for the beginning and 5 for each of 5 times, of n places each; O(n) memory. Every point by itself:
/// deterministic where `distance` is.
std::vector<float> descend(View<float, 2> points, const DistanceFunction& distance);

}  // namespace stipple::tasks
