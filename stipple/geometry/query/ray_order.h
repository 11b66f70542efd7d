#pragma once
// The order in which rays are cast: rays that enter and leave the mesh's box at like places go through the same nodes.

#include <cmath>
#include <cstdint>

#include "stipple/core/numeric.h"

namespace stipple::geometry {

/// The box of a mesh as ray_key sees it: cells of one size along every axis.
struct RayGrid {
    float low[3], high[3], scale;  // scale: 32 / longest side
};

STIPPLE_HD RayGrid make_ray_grid(const float* low, const float* high) {
    RayGrid grid;
    float extent = 0;
    for (int axis = 0; axis < 3; ++axis) {
        grid.low[axis] = low[axis];
        grid.high[axis] = high[axis];
        if (high[axis] - low[axis] > extent) extent = high[axis] - low[axis];
    }
    grid.scale = 32 / extent;
    return grid;
}

/// 30 bits: the cells of the places where the ray enters and leaves the box, interleaved. Whatever is not a number goes
/// to an outer cell: the order decides about speed only.
STIPPLE_HD uint32_t ray_key(const RayGrid& grid, const float* origin, const float* direction) {
    float enter = 0, leave = 3e38f;
    for (int axis = 0; axis < 3; ++axis) {
        const float inverse = 1 / direction[axis];
        const float a = (grid.low[axis] - origin[axis]) * inverse, b = (grid.high[axis] - origin[axis]) * inverse;
        enter = fmaxf(enter, fminf(a, b));
        leave = fminf(leave, fmaxf(a, b));
    }
    leave = fmaxf(leave, enter);
    uint32_t key = 0;
    for (int axis = 0; axis < 6; ++axis) {
        const int of = axis % 3;
        const float place = origin[of] + (axis < 3 ? enter : leave) * direction[of];
        const auto cell = static_cast<uint32_t>(fminf(fmaxf((place - grid.low[of]) * grid.scale, 0.0f), 31.0f));
        // Five zero bits between any two.
        key |= ((cell & 1) | (cell & 2) << 5 | (cell & 4) << 10 | (cell & 8) << 15 | (cell & 16) << 20) << (5 - axis);
    }
    return key;
}

}  // namespace stipple::geometry
