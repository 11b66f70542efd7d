#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "stipple/geometry/query/mesh_hierarchy.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/space_curve.h"

namespace stipple::geometry::cuda {
namespace {

using ops::cuda::blocks_for;
using ops::cuda::from_ordered_bits;
using ops::cuda::ordered_bits;
using ops::cuda::Scratch;
using ops::cuda::warp_min;

constexpr int kMeshHierarchyThreads = 256;
constexpr int kFacesPerThread = 8;  // of the bounds' reduction
constexpr int kCurveBits = 21;

struct Source {
    const float* vertices;
    const int32_t* triangles;
    int32_t faces;

    __device__ float3 corner(int64_t face, int k) const {
        const float* p = vertices + 3 * int64_t{triangles[3 * face + k]};
        return make_float3(p[0], p[1], p[2]);
    }
};

/// By integer minima, so in any order the same.
__global__ void __launch_bounds__(kMeshHierarchyThreads) find_bounds(Source from, uint32_t* bounds) {
    float lowest[6] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
    const int64_t begin = int64_t{blockIdx.x} * kMeshHierarchyThreads * kFacesPerThread;
    const int64_t end = min(begin + kMeshHierarchyThreads * kFacesPerThread, int64_t{from.faces});
    for (int64_t face = begin + threadIdx.x; face < end; face += kMeshHierarchyThreads) {
        for (int k = 0; k < 3; ++k) {
            const float3 p = from.corner(face, k);
            const float values[6] = {p.x, p.y, p.z, -p.x, -p.y, -p.z};
#pragma unroll
            for (int i = 0; i < 6; ++i) lowest[i] = fminf(lowest[i], values[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        const uint32_t value = warp_min(ordered_bits(lowest[i]));
        if (threadIdx.x % 32 == 0) atomicMin(bounds + i, value);
    }
}

__global__ void __launch_bounds__(kMeshHierarchyThreads)
    compute_codes(Source from, const uint32_t* bounds, uint64_t* codes, int32_t* order) {
    const int64_t face = int64_t{blockIdx.x} * kMeshHierarchyThreads + threadIdx.x;
    if (face >= from.faces) return;
    float lowest[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) lowest[i] = from_ordered_bits(bounds[i]);
    const float extent = fmaxf(-lowest[3] - lowest[0], fmaxf(-lowest[4] - lowest[1], -lowest[5] - lowest[2]));
    constexpr uint32_t kCells = 1u << kCurveBits;
    const float scale = extent > 0 ? static_cast<float>(kCells) / extent : 0;
    const float3 a = from.corner(face, 0), b = from.corner(face, 1), c = from.corner(face, 2);
    codes[face] = ops::hilbert_code(ops::curve_cell((a.x + b.x + c.x) / 3, lowest[0], scale, kCells),
                                    ops::curve_cell((a.y + b.y + c.y) / 3, lowest[1], scale, kCells),
                                    ops::curve_cell((a.z + b.z + c.z) / 3, lowest[2], scale, kCells), kCurveBits);
    order[face] = static_cast<int32_t>(face);
}

/// A thread for each place of a leaf.
__global__ void __launch_bounds__(kMeshHierarchyThreads)
    write_leaves(Source from, const int32_t* order, MeshHierarchyView to) {
    const int64_t place = int64_t{blockIdx.x} * kMeshHierarchyThreads + threadIdx.x;
    if (place >= int64_t{to.leaves} * kFanout) return;
    float4* corners = to.corners + 3 * place;
    if (place >= from.faces) {
        corners[0] = corners[1] = corners[2] = make_float4(0, 0, 0, __uint_as_float(kNoFace));
        return;
    }
    const int32_t face = order[place];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const float3 p = from.corner(face, k);
        corners[k] = make_float4(p.x, p.y, p.z, __uint_as_float(static_cast<uint32_t>(face)));
    }
}

/// A thread for each child of a level's nodes, the places of children that are not there among them.
__global__ void __launch_bounds__(kMeshHierarchyThreads) write_level(MeshHierarchyView to, int level) {
    const int64_t child = int64_t{blockIdx.x} * kMeshHierarchyThreads + threadIdx.x;
    if (child >= int64_t{to.level_count[level]} * kFanout) return;
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    if (child < to.level_count[level - 1]) {
        if (level == 1) {
            for (int i = 0; i < 3 * kFanout; ++i) {
                const float4 p = to.corners[3 * kFanout * child + i];
                if (__float_as_uint(p.w) == kNoFace) continue;
                const float values[3] = {p.x, p.y, p.z};
#pragma unroll
                for (int axis = 0; axis < 3; ++axis) {
                    low[axis] = fminf(low[axis], values[axis]);
                    high[axis] = fmaxf(high[axis], values[axis]);
                }
            }
        } else {
            BoxNode& node = to.nodes[to.level_begin[level - 1] + child];
#pragma unroll
            for (int axis = 0; axis < 3; ++axis) {
#pragma unroll
                for (int i = 0; i < kFanout; ++i) {
                    low[axis] = fminf(low[axis], node.low(axis, i));
                    high[axis] = fmaxf(high[axis], node.high(axis, i));
                }
            }
        }
    }
    BoxNode& parent = to.nodes[to.level_begin[level] + child / kFanout];
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        parent.low(axis, static_cast<int>(child % kFanout)) = low[axis];
        parent.high(axis, static_cast<int>(child % kFanout)) = high[axis];
    }
}

__global__ void __launch_bounds__(kMeshHierarchyThreads) number_rows(int32_t* rows, int32_t n) {
    const int64_t i = int64_t{blockIdx.x} * kMeshHierarchyThreads + threadIdx.x;
    if (i < n) rows[i] = static_cast<int32_t>(i);
}

}  // namespace

ops::cuda::Scratch<int32_t> sort_rows(Scratch<uint32_t>& keys, int bits, cudaStream_t stream) {
    const int64_t n = keys.count();
    Scratch<int32_t> rows(n, stream), sorted(n, stream);
    Scratch<uint32_t> other(n, stream);
    number_rows<<<blocks_for(n, kMeshHierarchyThreads), kMeshHierarchyThreads, 0, stream>>>(rows.get(),
                                                                                            static_cast<int32_t>(n));
    STIPPLE_CHECK_LAUNCH(number_rows);
    cub::DoubleBuffer<uint32_t> key_buffers(keys.get(), other.get());
    cub::DoubleBuffer<int32_t> row_buffers(rows.get(), sorted.get());
    size_t bytes = 0;
    STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, key_buffers, row_buffers, n, 0, bits, stream));
    const Scratch<std::byte> scratch(static_cast<int64_t>(bytes), stream);
    STIPPLE_CHECK_CUDA(
        cub::DeviceRadixSort::SortPairs(scratch.get(), bytes, key_buffers, row_buffers, n, 0, bits, stream));
    return row_buffers.Current() == rows.get() ? std::move(rows) : std::move(sorted);
}

MeshHierarchy::MeshHierarchy(const MeshView& mesh, cudaStream_t stream) : device(mesh.device()) {
    view.faces = static_cast<int32_t>(mesh.faces());
    if (view.faces == 0) return;
    view.leaves = (view.faces - 1) / kFanout + 1;
    view.level_count[0] = view.leaves;
    int64_t nodes = 0;
    do {
        const int level = ++view.levels;
        view.level_begin[level] = static_cast<int32_t>(nodes);
        view.level_count[level] = (view.level_count[level - 1] - 1) / kFanout + 1;
        nodes += view.level_count[level];
    } while (view.level_count[view.levels] > 1);

    const auto aligned = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
    const int64_t corner_bytes = aligned(int64_t{view.leaves} * kFanout * 3 * sizeof(float4));
    const int64_t node_bytes = aligned(nodes * sizeof(BoxNode));
    memory = Scratch<std::byte>(corner_bytes + node_bytes + 6 * sizeof(uint32_t), stream);
    view.corners = reinterpret_cast<float4*>(memory.get());
    view.nodes = reinterpret_cast<BoxNode*>(memory.get() + corner_bytes);
    view.bounds = reinterpret_cast<uint32_t*>(memory.get() + corner_bytes + node_bytes);

    const Source from = {mesh.vertices.data(), mesh.triangles.data(), view.faces};
    Scratch<uint64_t> codes(view.faces, stream), other_codes(view.faces, stream);
    Scratch<int32_t> order(view.faces, stream), other_order(view.faces, stream);
    STIPPLE_CHECK_CUDA(cudaMemsetAsync(view.bounds, 0xff, 6 * sizeof(uint32_t), stream));
    find_bounds<<<blocks_for(view.faces, kMeshHierarchyThreads * kFacesPerThread), kMeshHierarchyThreads, 0, stream>>>(
        from, view.bounds);
    STIPPLE_CHECK_LAUNCH(find_bounds);
    compute_codes<<<blocks_for(view.faces, kMeshHierarchyThreads), kMeshHierarchyThreads, 0, stream>>>(
        from, view.bounds, codes.get(), order.get());
    STIPPLE_CHECK_LAUNCH(compute_codes);
    cub::DoubleBuffer<uint64_t> code_buffers(codes.get(), other_codes.get());
    cub::DoubleBuffer<int32_t> order_buffers(order.get(), other_order.get());
    size_t bytes = 0;
    STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, code_buffers, order_buffers, view.faces, 0,
                                                       3 * kCurveBits, stream));
    const Scratch<std::byte> scratch(static_cast<int64_t>(bytes), stream);
    STIPPLE_CHECK_CUDA(cub::DeviceRadixSort::SortPairs(scratch.get(), bytes, code_buffers, order_buffers, view.faces, 0,
                                                       3 * kCurveBits, stream));
    write_leaves<<<blocks_for(int64_t{view.leaves} * kFanout, kMeshHierarchyThreads), kMeshHierarchyThreads, 0,
                   stream>>>(from, order_buffers.Current(), view);
    STIPPLE_CHECK_LAUNCH(write_leaves);
    for (int level = 1; level <= view.levels; ++level) {
        write_level<<<blocks_for(int64_t{view.level_count[level]} * kFanout, kMeshHierarchyThreads),
                      kMeshHierarchyThreads, 0, stream>>>(view, level);
        STIPPLE_CHECK_LAUNCH(write_level);
    }
}

MeshHierarchy::~MeshHierarchy() {
    // The default stream is that of the current device.
    int before = device.index;
    cudaGetDevice(&before);
    if (before != device.index) cudaSetDevice(device.index);
    memory = {};
    if (before != device.index) cudaSetDevice(before);
}

std::shared_ptr<const MeshHierarchy> build(const MeshView& mesh, Stream stream) {
    const ops::cuda::CurrentDevice current(mesh.device());
    return std::make_shared<const MeshHierarchy>(mesh, ops::cuda::raw(stream));
}

}  // namespace stipple::geometry::cuda
