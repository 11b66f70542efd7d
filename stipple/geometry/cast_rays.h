#pragma once

#include <array>
#include <limits>
#include <vector>

#include "stipple/geometry/mesh_index.h"

namespace stipple::geometry {

/// m rays: from origins along directions (any length but 0: t counts in lengths of the direction), hits within
/// [t_near, t_far], 0 <= t_near. The numbers of a row are adjacent.
struct Rays {
    View<const float, 2> origins;     // [m, 3]
    View<const float, 2> directions;  // [m, 3]
    float t_near = 0, t_far = std::numeric_limits<float>::infinity();
};

/// Outputs for m rays, contiguous, on the index's device; an empty view leaves one out.
struct RayHits {
    View<float, 1> t;             // [m] +infinity where nothing is hit
    View<int32_t, 1> faces;       // [m] -1 where nothing is hit
    View<float, 2> barycentrics;  // [m, 3] 0 where nothing is hit
};

/// The first hit of every ray; of several at the same t (rounded to float) the lowest face. Both sides of a face count.
/// No ray slips through an edge or a vertex between faces: exact tests decide, and give the same bits on every device.
/// With Embree a face seen all but edge-on, at a corner, may be overlooked: of rays aimed at corners and edges one in
/// 800,000. A face seen exactly edge-on may count or not. A ray with a non-finite number or a zero direction hits
/// nothing. t and barycentrics are computed in double from the float32 corners. Throws Error{bad_argument} for wrong
/// shapes, mixed devices and an empty range of t. About O(log faces) a ray, in any order: they are sorted inside.
void first_hit(const MeshIndex& index, const Rays& rays, const RayHits& hits, Stream stream = {});

/// Whether each ray hits anything: 1 or 0. Cheaper than first_hit.
void any_hit(const MeshIndex& index, const Rays& rays, View<uint8_t, 1> hit, Stream stream = {});

/// All hits, in host memory: those of ray i are [offsets[i], offsets[i + 1]), by t, then by face. A ray through an edge
/// or a vertex hits the faces that meet there, each once.
struct AllHits {
    std::vector<int64_t> offsets;  // [rays + 1]
    std::vector<float> t;
    std::vector<int32_t> faces;
    std::vector<std::array<float, 3>> barycentrics;
};
AllHits all_hits(const MeshIndex& index, const Rays& rays, Stream stream = {});

}  // namespace stipple::geometry
