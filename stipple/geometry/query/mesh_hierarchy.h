#pragma once
// The mesh on the device: faces along a Hilbert curve, four to a leaf, and nodes of four boxes each. Included by .cu
// files only.
//
// Nothing points anywhere: the children of node i of level l are the items 4 i .. 4 i + 3 of level l - 1, level 0 being
// the leaves. The highest level has one node.

#include <memory>

#include "stipple/geometry/query/mesh_queries_cuda.h"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::geometry::cuda {

constexpr int kFanout = 4;      // children of a node, and faces of a leaf
constexpr int kMaxLevels = 16;  // 4^16 > 2^31
constexpr uint32_t kNoFace = 0xffffffffu;

/// The boxes of a node's children: along each axis the four lows, then the four highs, each in one load. A child that
/// is not there has the infinite bounds low > high.
struct BoxNode {
    float4 sides[6];

    __device__ float& low(int axis, int child) { return (&sides[axis].x)[child]; }
    __device__ float& high(int axis, int child) { return (&sides[3 + axis].x)[child]; }
};

/// As kernels see it.
struct MeshHierarchyView {
    float4* corners = nullptr;   // [leaves, 4, 3]: of a face; w of the first holds the bits of its index or kNoFace
    BoxNode* nodes = nullptr;    // level by level
    uint32_t* bounds = nullptr;  // ordered bits of the lowest x, y, z, -x, -y, -z of any corner
    int32_t faces = 0, leaves = 0, levels = 0;
    int32_t level_begin[kMaxLevels + 1] = {};  // of level l: the first of its nodes; [0] is not used
    int32_t level_count[kMaxLevels + 1] = {};  // items of level l; [0]: leaves
};

/// What MeshIndex keeps. The memory goes back in the order of the stream that built it.
struct MeshHierarchy {
    MeshHierarchy(const MeshView& mesh, cudaStream_t stream);
    ~MeshHierarchy();
    MeshHierarchy(const MeshHierarchy&) = delete;
    MeshHierarchy& operator=(const MeshHierarchy&) = delete;

    Device device;
    ops::cuda::Scratch<std::byte> memory;
    MeshHierarchyView view;
};

/// Rows 0 .. n - 1 in the order of their keys, of which the lower `bits` count; keys are overwritten. Stable.
ops::cuda::Scratch<int32_t> sort_rows(ops::cuda::Scratch<uint32_t>& keys, int bits, cudaStream_t stream);

/// Rows that one launch takes: numbered by int32, with room for blocks.
constexpr int64_t kMostRows = int64_t{1} << 28;

}  // namespace stipple::geometry::cuda
