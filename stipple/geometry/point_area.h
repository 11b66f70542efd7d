#pragma once

#include <cmath>

#include "stipple/core/numeric.h"

namespace stipple::geometry {

/// What point_areas makes of a point's neighbours: `columns` squared distances, nearest first, the point itself being
/// one of them; those that are not there are +infinity.
STIPPLE_HD float area_of_neighbours(const float* distances_sq, int64_t columns) {
    int64_t k = columns - 1;
    while (k > 0 && !(distances_sq[k] < INFINITY)) --k;
    return k > 0 ? 3.14159265f * distances_sq[k] / static_cast<float>(k) : 0.0f;
}

}  // namespace stipple::geometry
