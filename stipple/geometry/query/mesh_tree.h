#pragma once
// What answers mesh queries on the CPU: the triangles, and Embree or a hierarchy of our own over them. Included by
// mesh_index.cpp, closest_point.cpp and cast_rays.cpp only.

#include <algorithm>
#include <memory>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/box.h"
#include "stipple/geometry/mesh_view.h"
#include "stipple/geometry/query/triangle.h"

namespace stipple::geometry::cpu {

/// A copy of the mesh, face by face: all that is asked about one is in one line of the cache.
struct Triangles {
    Array<float, 2> faces;  // [m, 16]: three corners, two numbers for Proposal::depth, the rest not used
    Box<float> box = {};    // of all corners

    int64_t size() const { return faces.size(0); }
    const float* corner(int32_t face, int k) const { return faces.data() + 16 * int64_t{face} + 3 * k; }
    const float* borders(int32_t face) const { return faces.data() + 16 * int64_t{face} + 9; }
    Triangle operator()(int32_t face) const {
        const float* p = corner(face, 0);
        return {{p[0], p[1], p[2]}, {p[3], p[4], p[5]}, {p[6], p[7], p[8]}};
    }
    float largest() const {  // coordinate, without its sign
        float most = 0;
        for (int axis = 0; axis < 3; ++axis) most = std::max(most, std::max(-box.low[axis], box.high[axis]));
        return most;
    }
};

/// One ray of a query, finite and with a direction.
struct Ray {
    float origin[3], direction[3];
    float t_near, t_far;
};

inline Vec3d origin_of(const Ray& ray) {
    return {ray.origin[0], ray.origin[1], ray.origin[2]};
}
inline Vec3d direction_of(const Ray& ray) {
    return {ray.direction[0], ray.direction[1], ray.direction[2]};
}

/// What all_hits collects, in the order it was found.
struct RayHit {
    OnRay met;
    int32_t face;
};

struct EmbreeScene;
struct BoxTree;

struct MeshTree {
    Triangles triangles;
    std::shared_ptr<const EmbreeScene> embree;
    std::unique_ptr<const BoxTree> boxes;  // where Embree does not answer

    ~MeshTree();
};

enum class Engine { best, own };
std::shared_ptr<const MeshTree> build(const MeshView& mesh, Engine engine = Engine::best);

/// The nearest face; `guess` (-1: none) is one that may be near. The query is finite.
NearestFace nearest_face(const MeshTree& tree, const float* query, int32_t guess);

/// The first hits of up to kRayBatch rays. Coherent: they go through much the same nodes.
constexpr int kRayBatch = 64;
void first_hits(const MeshTree& tree, const Ray* rays, int count, bool coherent, FirstHit* hits);
void any_hits(const MeshTree& tree, const Ray* rays, int count, bool coherent, bool* hits);
void all_hits(const MeshTree& tree, const Ray& ray, std::vector<RayHit>& hits);

}  // namespace stipple::geometry::cpu
