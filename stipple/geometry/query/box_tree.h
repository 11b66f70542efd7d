#pragma once
// Mesh queries on the CPU without Embree: faces along a space-filling curve, boxes over eight of them, boxes over eight
// boxes. Plain and slower than Embree; answers where Embree is not built in, and where its single precision ends.

#include <vector>

#include "stipple/core/box.h"
#include "stipple/geometry/query/mesh_tree.h"

namespace stipple::geometry::cpu {

struct BoxTree {
    std::vector<int32_t> faces;  // along the curve
    std::vector<std::vector<Box<float>>>
        levels;  // [0]: of eight faces; [l + 1]: of eight boxes of l; the last: one box
};

BoxTree build_boxes(const Triangles& triangles);

NearestFace nearest_face(const BoxTree& tree, const Triangles& triangles, const float* query, int32_t guess);
void first_hits(const BoxTree& tree, const Triangles& triangles, const Ray* rays, int count, bool coherent,
                FirstHit* hits);
void any_hits(const BoxTree& tree, const Triangles& triangles, const Ray* rays, int count, bool coherent, bool* hits);
void all_hits(const BoxTree& tree, const Triangles& triangles, const Ray& ray, std::vector<RayHit>& hits);

}  // namespace stipple::geometry::cpu
