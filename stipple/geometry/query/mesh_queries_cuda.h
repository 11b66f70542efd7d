#pragma once
// The launchers of mesh queries on CUDA. Arguments have been checked.

#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/closest_point.h"

namespace stipple::geometry::cuda {

std::shared_ptr<const MeshHierarchy> build(const MeshView& mesh, Stream stream);

void closest_point(const MeshIndex& index, View<const float, 2> queries, const ClosestPoints& found, Stream stream);

void first_hit(const MeshIndex& index, const Rays& rays, const RayHits& hits, Stream stream);
void any_hit(const MeshIndex& index, const Rays& rays, View<uint8_t, 1> hit, Stream stream);
AllHits all_hits(const MeshIndex& index, const Rays& rays, Stream stream);

}  // namespace stipple::geometry::cuda
