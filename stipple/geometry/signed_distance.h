#pragma once

#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/winding_number.h"

namespace stipple::geometry {

/// closest_point with a sign: negative where the winding number is above one half. `found.distances` is wanted.
void signed_distance(const MeshIndex& index, const WindingIndex& winding, View<const float, 2> queries,
                     const ClosestPoints& found, Stream stream = {});

/// 1 where the winding number is above one half, else 0.
void is_inside(const WindingIndex& winding, View<const float, 2> queries, View<uint8_t, 1> inside, Stream stream = {});

}  // namespace stipple::geometry
