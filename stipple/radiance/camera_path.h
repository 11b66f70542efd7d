#pragma once
// Cameras for new pictures of a field.

#include "stipple/core/vec3.h"
#include "stipple/radiance/field.h"

namespace stipple::radiance {

/// A picture's size and how much it sees; 0: as the field's first camera has it, or 800 x 800 with 40 degrees.
struct Lens {
    int32_t width = 0, height = 0;
    double degrees = 0;  // across the width
};

/// A camera at `eye` that looks at `aim`, the direction `up` upwards in its picture (another where it looks along it).
/// All about the field's origin. Throws Error{bad_argument} when the two are one place.
Camera look_at(const Field& field, Vec3d eye, Vec3d aim, Vec3d up, const Lens& lens = {});

/// Where is up for the cameras: the mean of their upward axes, z where there are none or they disagree.
Vec3d up_of(const Field& field);

/// Once around the middle of the field's box, at the mean distance and the mean elevation of its cameras from there;
/// for a field without cameras, at the box's diagonal times 1.5 and at 30 degrees. `elevation` in degrees, NaN: that.
std::vector<Camera> orbit(const Field& field, int frames, double elevation, const Lens& lens = {});

}  // namespace stipple::radiance
