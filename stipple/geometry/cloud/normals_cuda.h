#pragma once
// The CUDA launchers behind normals.h. Arguments are checked already; empty views are outputs not wanted.

#include <array>

#include "stipple/core/view.h"

namespace stipple::geometry::cuda {

/// Rows [first, first + m) of the cloud from their neighbours [m, k].
void normals_of_rows(View<const float, 2> points, int64_t first, View<const int32_t, 2> neighbours, float radius_sq,
                     View<float, 2> normals, View<float, 1> curvatures, Stream stream);

void orient_towards(View<const float, 2> points, View<float, 2> normals, const std::array<double, 3>& viewpoint,
                    Stream stream);

}  // namespace stipple::geometry::cuda
