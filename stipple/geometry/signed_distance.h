#pragma once
// Which side of a surface a point is on, and how far away: by the winding number, which needs no closed mesh.

#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/winding_number.h"

namespace stipple::geometry {

/// closest_point with a sign: distances are negative where the winding number is above one half. The two indices are of
/// one mesh, or `winding` is of something else that tells the side, e.g. the oriented points that the mesh was made of.
///
/// `found.distances` must be there, the other outputs as in closest_point. A non-finite query, and every query of a
/// mesh without faces, gets +infinity. On an open mesh the sign changes where the surface's smooth continuation would
/// be. Throws Error{bad_argument} as closest_point does, and when the indices are on two devices.
void signed_distance(const MeshIndex& index, const WindingIndex& winding, View<const float, 2> queries,
                     const ClosestPoints& found, Stream stream = {});

/// 1 where the winding number is above one half, else 0; non-finite queries give 0. queries [m, 3], inside [m]
/// contiguous, on the index's device.
void is_inside(const WindingIndex& winding, View<const float, 2> queries, View<uint8_t, 1> inside, Stream stream = {});

}  // namespace stipple::geometry
