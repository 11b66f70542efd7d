#pragma once
// What relax.h does with one point, the same bits on CPU and CUDA (no contraction on either).

#include "stipple/core/vec3.h"

namespace stipple::tasks {

inline constexpr int64_t kRing = 6;       // neighbours whose mean distance is the local spacing
inline constexpr float kReach = 2;        // of the repulsion, in spacings
inline constexpr float kStep = 0.25f;     // in spacings, for the force of one neighbour at no distance
inline constexpr float kFarthest = 0.5f;  // from where a point was at the start, in spacings

STIPPLE_HD Vec3f relax_row(const float* points, int64_t i) {
    return {points[3 * i], points[3 * i + 1], points[3 * i + 2]};
}

/// Mean distance of point i to the nearest six of its k neighbours, itself not among them.
STIPPLE_HD float ring_spacing(const float* points, int64_t i, const int32_t* near, int64_t k) {
    float sum = 0;
    int64_t found = 0;
    for (int64_t j = 0; j < k && found < kRing; ++j) {
        if (near[j] < 0 || near[j] == i) continue;
        sum += length(relax_row(points, i) - relax_row(points, near[j]));
        ++found;
    }
    return sum / static_cast<float>(found > 0 ? found : 1);
}

/// Mean of the spacings of those of its neighbours that move.
STIPPLE_HD float mean_spacing_around(const float* spacings, int64_t movable, int64_t i, const int32_t* near,
                                     int64_t k) {
    float sum = 0;
    int64_t found = 0;
    for (int64_t j = 0; j < k; ++j) {
        if (near[j] < 0 || near[j] >= movable) continue;
        sum += spacings[near[j]];
        ++found;
    }
    return found > 0 ? sum / static_cast<float>(found) : spacings[i];
}

/// Where point i goes, that was at `start` and stays in the plane of the normal.
STIPPLE_HD Vec3f pushed(const float* points, Vec3f start, Vec3f normal, float spacing, int64_t i, const int32_t* near,
                        int64_t k) {
    const Vec3f own = relax_row(points, i);
    const float reach = kReach * spacing;
    Vec3f push;
    for (int64_t j = 0; j < k; ++j) {
        if (near[j] < 0 || near[j] == i) continue;
        const Vec3f offset = own - relax_row(points, near[j]);
        const float distance = length(offset);
        if (distance < reach && distance > 0) push = push + ((1 - distance / reach) / distance) * offset;
    }
    push = push - dot(push, normal) * normal;
    Vec3f moved = own + kStep * spacing * push - start;
    const float far = length(moved);
    if (far > kFarthest * spacing) moved = (kFarthest * spacing / far) * moved;
    return start + moved;
}

}  // namespace stipple::tasks
