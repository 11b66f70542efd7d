#pragma once
// Flat places of a sweep, which new points must not thicken.

#include "stipple/core/view.h"

namespace stipple::tasks {

/// Of inputs [n, 3] that a scanner has swept in lines: where the 96 nearest neighbours of one are flat, that is, have
/// less than a hundredth of their variance along the normal of their plane, the points [m, 3] whose nearest input it is
/// are moved along that normal to within half of these neighbours' mean distance from the plane. Level ground stays as
/// thin as it was, although along a line nothing tells how the surface is tilted.
///
/// Lines: of most of these neighbours, the eight nearest vary in one direction at least six times as much as in
/// another. Evenly spread and random points do not, and all stays as it was. Finite inputs; points that are not finite
/// stay. The same for any number of threads. O((n + m) log n).
void keep_to_planes(View<const float, 2> inputs, View<float, 2> points);

}  // namespace stipple::tasks
