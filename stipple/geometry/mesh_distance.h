#pragma once

#include "stipple/core/fields.h"
#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// How far the surface of one mesh is from that of another, from the one to the other only.
struct MeshDistance {
    double mean = 0, rms = 0;  // over points uniform by area
    double largest = 0;        // over those points and the vertices of faces: the one-sided Hausdorff distance, nearly
};
const Fields& mesh_distance_fields();

/// From `samples` points and the vertices of `from` to the nearest point of `to`, both in one frame. CPU.
/// Deterministic, threads do not matter. Throws Error{bad_argument} as sample_surface does, and for a `to` without
/// faces.
MeshDistance mesh_distance(const MeshView& from, const MeshView& to, int64_t samples = 100'000);

}  // namespace stipple::geometry
