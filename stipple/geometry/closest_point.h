#pragma once

#include "stipple/geometry/mesh_index.h"

namespace stipple::geometry {

/// Outputs for m queries, on the index's device and contiguous; an empty view leaves one out.
struct ClosestPoints {
    View<float, 1> distances;     // [m] Euclidean, not squared
    View<int32_t, 1> faces;       // [m]
    View<float, 2> barycentrics;  // [m, 3] of the face's corners, each in [0, 1], sum 1
    View<float, 2> points;        // [m, 3]
};

/// The nearest point of the mesh for every query [m, 3].
///
/// Distances are right to 1e-6 relative (float32 coordinates). Where several faces are equally near (a query nearest to
/// an edge or vertex) the lowest face wins among those whose computed distance is equal. A non-finite query, and every
/// query of a mesh without faces, gets distance +infinity, face -1, barycentrics 0 and the point NaN. Queries are taken
/// in any order without loss: they are sorted inside. Throws Error{bad_argument} for wrong shapes and mixed devices.
/// About O(log faces) a query.
void closest_point(const MeshIndex& index, View<const float, 2> queries, const ClosestPoints& found,
                   Stream stream = {});

}  // namespace stipple::geometry
