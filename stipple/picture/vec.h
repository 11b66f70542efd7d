#pragma once
// Vectors of pictures. Geometry before projection is double, so that coordinates of any size are framed exactly;
// per-pixel shading is float.

#include "stipple/core/vec3.h"

namespace stipple::picture {

using stipple::Vec3d;
using stipple::Vec3f;

/// Unit length; the zero vector (and one that overflows) becomes `fallback`.
template <class T>
Vec3<T> normalized(Vec3<T> a, Vec3<T> fallback = {0, 0, 0}) {
    const T l = length(a);
    return l > 0 && std::isfinite(l) ? a * (1 / l) : fallback;
}

template <class T>
Vec3<T> mix(Vec3<T> a, Vec3<T> b, T t) {
    return a + (b - a) * t;
}

inline Vec3d to_vec(const std::array<double, 3>& a) {
    return to_vec3(a);
}

/// 0 below `low`, 1 above `high`, smooth between.
inline float smooth_step(float low, float high, float value) {
    const float t = std::fmin(std::fmax((value - low) / (high - low), 0.f), 1.f);
    return t * t * (3 - 2 * t);
}

}  // namespace stipple::picture
