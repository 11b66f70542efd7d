#pragma once
// Mesh queries by Embree 3. Included by mesh_tree.cpp, where the build has Embree.

#include <string>

#include "stipple/geometry/query/mesh_tree.h"

namespace stipple::geometry::cpu {

std::string embree_version();

/// Null for a mesh without faces, and for one of more faces than Embree can number.
/// Fills in the borders.
std::shared_ptr<const EmbreeScene> build_embree(Triangles& triangles);

NearestFace nearest_face(const EmbreeScene& scene, const Triangles& triangles, const float* query, int32_t guess);
void first_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray* rays, int count, bool coherent,
                FirstHit* hits);
void any_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray* rays, int count, bool coherent,
              bool* hits);
void all_hits(const EmbreeScene& scene, const Triangles& triangles, const Ray& ray, std::vector<RayHit>& hits);

}  // namespace stipple::geometry::cpu
