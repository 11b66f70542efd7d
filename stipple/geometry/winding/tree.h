#pragma once
// The tree behind WindingIndex. Primitives lie in leaves along a kd-tree, lane by lane; above them, eight children to a
// node, are clusters with their moments. All leaves but the last are full, hence child j of node i is node 8 i + j one
// level down. The same arrays serve the CPU and, copied, CUDA.
//
// Inside, coordinates are multiplied by a power of two that brings the extent to about 1: nothing overflows, and no
// digit is lost.

#include <memory>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/geometry/mesh_view.h"
#include "stipple/geometry/winding/terms.h"

namespace stipple::geometry {

constexpr int kWindingLeaf = 8, kWindingFan = 8, kWindingLevels = 10;

struct WindingView {
    const float* nodes = nullptr;   // [node][kChildFields][kWindingFan]
    const float* leaves = nullptr;  // [leaf][kTriangleFields or kPointFields][kWindingLeaf]
    int32_t levels = 0;             // 0: empty. Level 0 is the parents of leaves; the last has one node
    int32_t level_begin[kWindingLevels] = {};
    float scale = 1;  // of coordinates
    bool of_points = false;

    int leaf_floats() const { return kWindingLeaf * (of_points ? int{kPointFields} : int{kTriangleFields}); }
};

namespace cpu {

struct WindingTree {
    Array<float, 1> nodes, leaves;
    WindingView view;  // of the arrays
};

/// Deterministic: the same input gives the same tree on any number of threads. O(m log m).
std::shared_ptr<const WindingTree> build_winding(const MeshView& mesh);
std::shared_ptr<const WindingTree> build_winding(View<const float, 2> points, View<const float, 2> normals,
                                                 View<const float, 1> areas, float softening);

void winding_number(const WindingTree& tree, View<const float, 2> queries, View<float, 1> winding, float accuracy);

}  // namespace cpu
}  // namespace stipple::geometry
