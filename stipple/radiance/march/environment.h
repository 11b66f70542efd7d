#pragma once
// What is seen behind the box, by direction, on CPU and CUDA: an octahedral map. A direction is divided by
// |x| + |y| + |z|; the upper half of the octahedron it then lies on is the diamond in the middle of a square, the lower
// half is folded out into the square's corners. Colours are continuous all over the sphere, so that the rounding of
// directions does not matter.

#include <cmath>

#include "stipple/core/numeric.h"
#include "stipple/core/vec3.h"

namespace stipple::radiance {

/// An Environment (field.h) in plain numbers.
struct EnvironmentView {
    const float* texels = nullptr;  // [side, side, 3], before their sigmoids
    int32_t side = 0;               // 0: there is none
};

/// The four texels about a direction and their weights.
struct Texels {
    int32_t texel[4];
    float weight[4];
};

/// Texel (i, j) has its centre at ((i + 0.5) / side, (j + 0.5) / side) of the square. Beyond an edge lies what is
/// folded there: the texels of the same edge, mirrored at its middle. `direction` need not be of unit length.
STIPPLE_HD Texels texels_of(Vec3f direction, int32_t side) {
    const float sum = fabsf(direction.x) + fabsf(direction.y) + fabsf(direction.z);
    float u = direction.x / sum, v = direction.y / sum;
    if (direction.z < 0) {
        const float folded = (1 - fabsf(v)) * (u < 0 ? -1.0f : 1.0f);
        v = (1 - fabsf(u)) * (v < 0 ? -1.0f : 1.0f);
        u = folded;
    }
    const auto to_texels = [side](float w) {  // NaN becomes the first
        const float texel = (0.5f * w + 0.5f) * static_cast<float>(side) - 0.5f, last = static_cast<float>(side) - 0.5f;
        return !(texel > -0.5f) ? -0.5f : texel < last ? texel : last;
    };
    const float s = to_texels(u), t = to_texels(v);
    const float low_s = floorf(s), low_t = floorf(t);
    Texels texels;
    for (int corner = 0; corner < 4; ++corner) {
        const int dx = corner >> 1, dy = corner & 1;
        int32_t x = static_cast<int32_t>(low_s) + dx, y = static_cast<int32_t>(low_t) + dy;
        if (x < 0 || x >= side) {
            x = x < 0 ? 0 : side - 1;
            y = side - 1 - y;
        }
        if (y < 0 || y >= side) {
            y = y < 0 ? 0 : side - 1;
            x = side - 1 - x;
        }
        texels.texel[corner] = x * side + y;
        texels.weight[corner] = (dx ? s - low_s : 1 - (s - low_s)) * (dy ? t - low_t : 1 - (t - low_t));
    }
    return texels;
}

/// Of the middle of a texel; not of unit length.
STIPPLE_HD Vec3f direction_of_texel(int32_t x, int32_t y, int32_t side) {
    const float u = 2 * (static_cast<float>(x) + 0.5f) / static_cast<float>(side) - 1;
    const float v = 2 * (static_cast<float>(y) + 0.5f) / static_cast<float>(side) - 1;
    const float z = 1 - fabsf(u) - fabsf(v);
    if (!(z < 0)) return {u, v, z};
    return {(1 - fabsf(v)) * (u < 0 ? -1.0f : 1.0f), (1 - fabsf(u)) * (v < 0 ? -1.0f : 1.0f), z};
}

/// One channel before its sigmoid.
STIPPLE_HD float interpolate(const Texels& texels, const float* values, int channel) {
    float sum = 0;
    for (int corner = 0; corner < 4; ++corner)
        sum += texels.weight[corner] * values[3 * texels.texel[corner] + channel];
    return sum;
}

}  // namespace stipple::radiance
