#include "stipple/geometry/query/mesh_tree.h"

#include <algorithm>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh_index.h"
#include "stipple/geometry/query/box_tree.h"
#include "stipple/geometry/query/mesh_tree_embree.h"

namespace stipple::geometry {
namespace cpu {
namespace {

constexpr int64_t kGrain = 4096;

Triangles copy(const MeshView& mesh) {
    Triangles copied;
    const int64_t m = mesh.faces();
    copied.faces = Array<float, 2>({m, 16});
    std::vector<Box<float>> boxes(static_cast<size_t>((m + kGrain - 1) / kGrain));
    parallel_for(m, kGrain, [&](int64_t begin, int64_t end) {
        auto box = Box<float>::none();
        for (int64_t i = 3 * begin; i < 3 * end; ++i) {
            const float* from = mesh.vertices.data() + 3 * int64_t{mesh.triangles.data()[i]};
            float* to = copied.faces.data() + 16 * (i / 3) + 3 * (i % 3);
            for (int axis = 0; axis < 3; ++axis) {
                to[axis] = from[axis];
                box.add(axis, from[axis]);
            }
        }
        boxes[begin / kGrain] = box;
    });
    if (m > 0) copied.box = Box<float>::none();
    for (const Box<float>& box : boxes) copied.box.add(box);
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
