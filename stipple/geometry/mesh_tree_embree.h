#pragma once
// Mesh queries by Embree 3. Included by mesh_tree.cpp, where the build has Embree.

#include <string>

#include "stipple/geometry/mesh_tree.h"

namespace stipple::geometry::cpu {

std::string embree_version();

/// Null where Embree's single precision would overflow or vanish in its products of three lengths.
std::shared_ptr<const EmbreeScene> build_embree(const Triangles& triangles);

NearestFace nearest_face(const EmbreeScene& scene, const Triangles& triangles, const float* query, int32_t guess);
FirstHit first_hit(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray);
bool any_hit(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray);
void all_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray, std::vector<RayHit>& hits);

}  // namespace stipple::geometry::cpu
