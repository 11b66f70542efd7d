#include "stipple/geometry/mesh_tree.h"

#include <algorithm>
#include <cstring>

#include "stipple/geometry/box_tree.h"
#include "stipple/geometry/mesh_index.h"
#include "stipple/geometry/mesh_tree_embree.h"

namespace stipple::geometry {
namespace cpu {
namespace {

Triangles copy(const MeshView& mesh) {
    Triangles copied;
    const int64_t n = mesh.vertices.size(0), m = mesh.faces();
    copied.vertices = Array<float, 2>({n, 4});
    const float* from = mesh.vertices.data();
    float* to = copied.vertices.data();
    for (int64_t i = 0; i < n; ++i, from += 3, to += 4) to[0] = from[0], to[1] = from[1], to[2] = from[2], to[3] = 0;
    copied.corners = Array<int32_t, 2>({m, 3});
    if (m > 0) std::memcpy(copied.corners.data(), mesh.triangles.data(), m * 3 * sizeof(int32_t));
    for (int axis = 0; axis < 3 && m > 0; ++axis) {
        copied.low[axis] = static_cast<float>(kFarAway);
        copied.high[axis] = -copied.low[axis];
    }
    for (int64_t i = 0; i < 3 * m; ++i) {
        const float* p = copied.vertices.data() + 4 * int64_t{copied.corners.data()[i]};
        for (int axis = 0; axis < 3; ++axis) {
            copied.low[axis] = std::min(copied.low[axis], p[axis]);
            copied.high[axis] = std::max(copied.high[axis], p[axis]);
        }
    }
    return copied;
}

}  // namespace

MeshTree::~MeshTree() = default;

std::shared_ptr<const MeshTree> build(const MeshView& mesh, Engine engine) {
    auto tree = std::make_shared<MeshTree>();
    tree->triangles = copy(mesh);
#ifdef STIPPLE_WITH_EMBREE
    if (engine == Engine::best) tree->embree = build_embree(tree->triangles);
#else
    static_cast<void>(engine);
#endif
    if (!tree->embree) tree->boxes = std::make_unique<const BoxTree>(build_boxes(tree->triangles));
    return tree;
}

// The one place that knows which engine answers.
#ifdef STIPPLE_WITH_EMBREE
#define STIPPLE_ASK(query, tree, ...)                                     \
    ((tree).embree ? query(*(tree).embree, (tree).triangles, __VA_ARGS__) \
                   : query(*(tree).boxes, (tree).triangles, __VA_ARGS__))
#else
#define STIPPLE_ASK(query, tree, ...) query(*(tree).boxes, (tree).triangles, __VA_ARGS__)
#endif

NearestFace nearest_face(const MeshTree& tree, const float* query, int32_t guess) {
    return STIPPLE_ASK(nearest_face, tree, query, guess);
}

void first_hits(const MeshTree& tree, const Ray* rays, int count, bool coherent, FirstHit* hits) {
    STIPPLE_ASK(first_hits, tree, rays, count, coherent, hits);
}

void any_hits(const MeshTree& tree, const Ray* rays, int count, bool coherent, bool* hits) {
    STIPPLE_ASK(any_hits, tree, rays, count, coherent, hits);
}

void all_hits(const MeshTree& tree, const Ray& ray, std::vector<RayHit>& hits) {
    STIPPLE_ASK(all_hits, tree, ray, hits);
}

}  // namespace cpu

std::string mesh_query_engine() {
#ifdef STIPPLE_WITH_EMBREE
    return cpu::embree_version();
#else
    return "own hierarchy";
#endif
}

}  // namespace stipple::geometry
