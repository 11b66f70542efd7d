#pragma once
// The last step of sample_surface_poisson. Not for users.

#include "stipple/core/array.h"

namespace stipple::geometry {

/// Exchanges chosen points for others until no two are nearer than `spacing`, or until none of the points left lies in
/// a gap wider than the nearest two are apart.
///
/// points   [n, 3] finite
/// chosen   [m] indices of points, ascending before and after
/// spacing  what to reach, above 0
///
/// Again and again one of the nearest two chosen points (the lowest index) goes, and the point furthest from all that
/// are left (the lowest index) comes: the farthest-point optimisation of Schloemer et al. 2011 on a finite set of
/// places, and only where it is wanted. Each exchange widens the smallest spacing or makes it rarer. On one thread;
/// about 10 microseconds an exchange. Returns the smallest spacing, or `spacing` when it is at least that.
float widen_spacing(View<const float, 2> points, float spacing, View<int32_t, 1> chosen);

}  // namespace stipple::geometry
