#pragma once

#include <cmath>
#include <cstdint>

#include "stipple/core/numeric.h"

namespace stipple::geometry {

/// What point_areas makes of a point's neighbours: `columns` squared distances and indices, nearest first, the point
/// itself being one of them; those that are not there are +infinity. `normals` may be null.
STIPPLE_HD float area_of_neighbours(const float* distances_sq, const int32_t* neighbours, int64_t columns,
                                    const float* normals, int64_t point) {
    int64_t found = columns;
    while (found > 0 && !(distances_sq[found - 1] < INFINITY)) --found;
    if (found < 2) return 0;
    const float area = 3.14159265f * distances_sq[found - 1] / static_cast<float>(found - 1);
    if (!normals) return area;
    // Of the k = found - 1 others, c are on the point's side. (k + 1) / (c + 1), which counts the point itself, is the
    // inverse of the share of that side without bias, and 1 where all are.
    int64_t same_side = 0;
    const float* n = normals + 3 * point;
    for (int64_t i = 0; i < found; ++i) {
        const float* other = normals + 3 * int64_t{neighbours[i]};
        same_side += n[0] * other[0] + n[1] * other[1] + n[2] * other[2] > 0 ? 1 : 0;
    }
    return area * static_cast<float>(found) / static_cast<float>(same_side > 1 ? same_side : 1);
}

}  // namespace stipple::geometry
