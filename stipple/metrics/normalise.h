#pragma once

#include <array>

#include "stipple/core/point_cloud.h"

namespace stipple::metrics {

/// Where a cloud lies and how large it is: what normalisation takes away.
struct UnitSphere {
    std::array<double, 3> center = {};  // mean of the finite points, relative to the cloud's origin
    double radius = 1;                  // largest distance of a finite point from it; 1 for one point
};

/// Of points [n, 3] on the CPU, in float64. Throws Error{bad_argument} without a finite point.
UnitSphere unit_sphere_of(View<const float, 2> points);

/// (points - center) / radius, rounded once.
Array<float, 2> normalised(View<const float, 2> points, const UnitSphere& sphere);

}  // namespace stipple::metrics
