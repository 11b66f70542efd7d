#pragma once
// What answers mesh queries on the CPU: the triangles, and Embree or a hierarchy of our own over them. Included by
// mesh_index.cpp, closest_point.cpp and cast_rays.cpp only.

#include <memory>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/geometry/mesh_view.h"
#include "stipple/geometry/triangle.h"

namespace stipple::geometry::cpu {

/// A copy of the mesh. Vertices are 16 bytes apart, as Embree wants them.
struct Triangles {
    Array<float, 2> vertices;   // [n, 4]
    Array<int32_t, 2> corners;  // [m, 3]
    float largest = 0;          // coordinate of a vertex that a face has, without its sign
    float extent = 0;           // the longest side of the box of these vertices

    int64_t faces() const { return corners.size(0); }
    const float* vertex(int32_t face, int corner) const {
        return vertices.data() + 4 * int64_t{corners.data()[3 * int64_t{face} + corner]};
    }
    Triangle operator()(int32_t face) const {
        const float *a = vertex(face, 0), *b = vertex(face, 1), *c = vertex(face, 2);
        return {{a[0], a[1], a[2]}, {b[0], b[1], b[2]}, {c[0], c[1], c[2]}};
    }
};

/// One ray of a query, finite and with a direction.
struct Ray {
    float origin[3], direction[3];
    float t_near, t_far;
};

/// What all_hits collects, in the order it was found.
struct RayHit {
    float t;
    int32_t face;
    double v, w;
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

FirstHit first_hit(const MeshTree& tree, const Ray& ray);
bool any_hit(const MeshTree& tree, const Ray& ray);
void all_hits(const MeshTree& tree, const Ray& ray, std::vector<RayHit>& hits);

}  // namespace stipple::geometry::cpu
