#pragma once

#include <cstdint>
#include <vector>

#include "stipple/core/view.h"

namespace stipple::ops::cpu {

/// Puts indices of points [n, 3] (finite ones) in the order of a space-filling curve: neighbours in the result are
/// neighbours in space. Cells of the curve that hold more than `crowd` points are refined until they do not, or their
/// points are equal, so outliers do not spoil the order of the rest. Deterministic; O(n) for even densities.
void spatial_order(View<const float, 2> points, std::vector<int32_t>& indices, int64_t crowd);

}  // namespace stipple::ops::cpu
