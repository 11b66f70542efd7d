#pragma once
// What CPU and CUDA do with one normal.

#include "stipple/geometry/cloud/normals_eigen.h"

namespace stipple::geometry {

/// curvature may be null.
STIPPLE_HD void write_normal(const LeastDirection& found, float* normal, float* curvature) {
    normal[0] = static_cast<float>(found.x);
    normal[1] = static_cast<float>(found.y);
    normal[2] = static_cast<float>(found.z);
    if (curvature) *curvature = found.exists ? static_cast<float>(found.share) : NAN;
}

/// The sign of the angle between normal and view decides, so it is computed without fused rounding.
STIPPLE_HD void turn_towards(const float* at, const double* viewpoint, float* normal) {
    Rounded cosine = 0.0;
    for (int axis = 0; axis < 3; ++axis)
        cosine = cosine + Rounded(normal[axis]) * (Rounded(viewpoint[axis]) - at[axis]);
    if (!(cosine < 0.0)) return;
    for (int axis = 0; axis < 3; ++axis) normal[axis] = -normal[axis];
}

}  // namespace stipple::geometry
