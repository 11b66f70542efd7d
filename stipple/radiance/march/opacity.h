#pragma once
// Densities to opacities, and the code of a view direction, on CPU and CUDA.

#include <cmath>

#include "stipple/core/vec3.h"
#include "stipple/radiance/field.h"

namespace stipple::radiance {

inline constexpr float kLeastTransmittance = 1e-3f;  // behind a sample that leaves less, nothing is seen

/// 1 - exp(-s softplus(u)), u: density and shift, s: length of the step.
template <class T>
STIPPLE_HD T opacity(T u, T s) {
    const T softplus = (u > 0 ? u : 0) + std::log1p(std::exp(u > 0 ? -u : u));
    return -std::expm1(-s * softplus);
}

/// d opacity / d u.
template <class T>
STIPPLE_HD T opacity_slope(T u, T s, T alpha) {
    const T sigmoid = u > 0 ? 1 / (1 + std::exp(-u)) : std::exp(u) / (1 + std::exp(u));
    return s * sigmoid * (1 - alpha);
}

/// softplus^-1 of the density at which a voxel has opacity `alpha`: the shift of a grid of zeros.
inline float shift_of(float alpha) {
    return static_cast<float>(std::log(1 / (1 - static_cast<double>(alpha)) - 1));
}

template <class T>
STIPPLE_HD T sigmoid(T x) {
    return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

/// The direction, the sines of its coordinates times 1, 2, 4, 8 (x first, frequencies within), then the cosines.
template <class T>
STIPPLE_HD void encode_view(Vec3<T> unit, T* to) {
    for (int axis = 0; axis < 3; ++axis) {
        to[axis] = unit[axis];
        for (int f = 0; f < kFrequencies; ++f) {
            const T angle = unit[axis] * static_cast<T>(1 << f);
            to[3 + axis * kFrequencies + f] = std::sin(angle);
            to[3 + 3 * kFrequencies + axis * kFrequencies + f] = std::cos(angle);
        }
    }
}

/// Entropy of what is left behind the last sample, kept away from 0 and 1, and its derivative.
template <class T>
STIPPLE_HD T end_entropy(T left, T& slope) {
    const T low = static_cast<T>(1e-6), high = 1 - low;
    const T p = left < low ? low : left > high ? high : left;
    slope = left < low || left > high ? 0 : std::log(1 - p) - std::log(p);
    return -(p * std::log(p) + (1 - p) * std::log(1 - p));
}

}  // namespace stipple::radiance
