#include "stipple/geometry/winding/launch.h"
#include "stipple/geometry/winding/point_area.h"
#include "stipple/ops/search/point_hierarchy.h"

namespace stipple::geometry::cuda {

using ops::cuda::blocks_for;
using ops::cuda::CurrentDevice;
using ops::cuda::raw;
using ops::cuda::Scratch;

/// The tree's arrays on the device. They go back in the order of the stream that built it.
struct WindingHierarchy {
    Device device;
    Scratch<float> nodes, leaves;
    WindingView view;
};

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr uint32_t kNobody = 0xffffffffu;  // the index of padding

struct StackEntry {
    uint32_t level_node;  // the level in the upper 4 bits
    uint32_t lanes;       // those to which the node is near
};
static_assert(kWindingLevels <= 16);  // and leaves of 8 are at most 2^28

__device__ uint32_t pack(int level, uint32_t node) {
    return static_cast<uint32_t>(level) << 28 | node;
}

__device__ float leaf_term(const WindingView& tree, int64_t leaf, float3 q) {
    float sum = 0;
    if (tree.of_points) {
        const float* block = tree.leaves + leaf * (kWindingLeaf * kPointFields);
        for (int i = 0; i < kWindingLeaf; ++i) sum += point_term(block + i, kWindingLeaf, q.x, q.y, q.z);
    } else {
        const float* block = tree.leaves + leaf * (kWindingLeaf * kTriangleFields);
        for (int i = 0; i < kWindingLeaf; ++i) sum += triangle_term(block + i, kWindingLeaf, q.x, q.y, q.z);
    }
    return sum;
}

/// A warp for 32 neighbouring queries, one to a lane. The warp goes through the nodes that are near to any of them,
/// whose numbers all lanes read at once; every lane decides and adds for itself, so results do not depend on the
/// others. The stack is the warp's, in shared memory.
__global__ void __launch_bounds__(kThreads)
    wind(WindingView tree, const float4* queries, int64_t rows, float accuracy_sq, float* winding) {
    __shared__ StackEntry stacks[kWarps][kWindingLevels * kWindingFan];
    const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    const int lane = threadIdx.x % 32;
    StackEntry* stack = stacks[threadIdx.x / 32];
    float4 query = make_float4(NAN, 0, 0, __uint_as_float(kNobody));
    if (row < rows) query = queries[row];
    const uint32_t index = __float_as_uint(query.w);
    const float3 q = make_float3(query.x * tree.scale, query.y * tree.scale, query.z * tree.scale);
    const bool asks = index != kNobody && !isnan(query.x) && !is_beyond(q.x, q.y, q.z);
    float sum = 0;
    int top = 0;
    const uint32_t all = __ballot_sync(~0u, asks);
    if (all != 0 && tree.levels > 0) {
        if (lane == 0) stack[0] = {pack(tree.levels - 1, 0), all};
        top = 1;
    }
    __syncwarp();
    while (top > 0) {
        const StackEntry entry = stack[--top];
        __syncwarp();
        const int level = static_cast<int>(entry.level_node >> 28);
        const int64_t node = entry.level_node & 0x0fffffffu;
        const bool active = entry.lanes >> lane & 1;
        const float* block = tree.nodes + (tree.level_begin[level] + node) * (kChildFields * kWindingFan);
        for (int i = 0; i < kWindingFan; ++i) {
            const float* child = block + i;
            const float x = child[kCenterX * kWindingFan] - q.x, y = child[kCenterY * kWindingFan] - q.y,
                        z = child[kCenterZ * kWindingFan] - q.z;
            const float distance_squared = distance_sq(x, y, z);
            const bool far =
                is_far(distance_squared, child[kRadiusSq * kWindingFan], child[kReachSq * kWindingFan], accuracy_sq);
            if (active && far)
                sum += cluster_term(x, y, z, distance_squared, child + kDipole * kWindingFan, kWindingFan);
            const bool near = active && !far;
            const uint32_t lanes = __ballot_sync(~0u, near);
            if (lanes == 0) continue;
            const int64_t below = node * kWindingFan + i;
            if (level == 0) {
                if (near) sum += leaf_term(tree, below, q);
            } else {
                if (lane == 0) stack[top] = {pack(level - 1, static_cast<uint32_t>(below)), lanes};
                ++top;
            }
        }
        __syncwarp();
    }
    if (index != kNobody) winding[index] = isnan(query.x) ? NAN : sum;
}

__global__ void negate_where_inside(const float* winding, float* distances, int64_t n) {
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i < n && winding[i] > 0.5f && distances[i] < INFINITY) distances[i] = -distances[i];
}

__global__ void mark_inside(const float* winding, uint8_t* inside, int64_t n) {
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i < n) inside[i] = winding[i] > 0.5f ? 1 : 0;
}

__global__ void write_areas(const float* distances_sq, const int32_t* neighbours, int64_t columns, const float* normals,
                            int64_t first, int64_t rows, float* areas) {
    const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (i < rows)
        areas[first + i] =
            area_of_neighbours(distances_sq + i * columns, neighbours + i * columns, columns, normals, first + i);
}

template <class T, int Rank>
Array<T, Rank> to_host(View<const T, Rank> from, cudaStream_t stream) {
    Array<T, Rank> to(from.shape());
    STIPPLE_CHECK_CUDA(
        cudaMemcpyAsync(to.data(), from.data(), from.elements() * sizeof(T), cudaMemcpyDeviceToHost, stream));
    return to;
}

Scratch<float> to_device(const Array<float, 1>& from, cudaStream_t stream) {
    Scratch<float> to(from.elements(), stream);
    STIPPLE_CHECK_CUDA(
        cudaMemcpyAsync(to.get(), from.data(), from.elements() * sizeof(float), cudaMemcpyHostToDevice, stream));
    return to;
}

std::shared_ptr<const WindingHierarchy> upload(const cpu::WindingTree& tree, Device device, cudaStream_t stream) {
    auto copy = std::make_shared<WindingHierarchy>();
    copy->device = device;
    copy->view = tree.view;
    copy->nodes = to_device(tree.nodes, stream);
    copy->leaves = to_device(tree.leaves, stream);
    copy->view.nodes = copy->nodes.get();
    copy->view.leaves = copy->leaves.get();
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));  // the host's arrays go
    return copy;
}

}  // namespace

std::shared_ptr<const WindingHierarchy> build_winding(const MeshView& mesh, Stream stream) {
    const CurrentDevice current(mesh.device());
    const auto vertices = to_host(mesh.vertices, raw(stream));
    const auto triangles = to_host(mesh.triangles, raw(stream));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(raw(stream)));
    const MeshView host(vertices.view(), triangles.view());
    require_mesh("WindingIndex", host);
    return upload(*cpu::build_winding(host), mesh.device(), raw(stream));
}

std::shared_ptr<const WindingHierarchy> build_winding(View<const float, 2> points, View<const float, 2> normals,
                                                      View<const float, 1> areas, float softening, Stream stream) {
    const CurrentDevice current(points.device());
    const auto host_points = to_host(points, raw(stream)), host_normals = to_host(normals, raw(stream));
    const auto host_areas = to_host(areas, raw(stream));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(raw(stream)));
    return upload(*cpu::build_winding(host_points.view(), host_normals.view(), host_areas.view(), softening),
                  points.device(), raw(stream));
}

void winding_number(const WindingHierarchy& tree, View<const float, 2> queries, View<float, 1> winding, float accuracy,
                    Stream stream) {
    const CurrentDevice current(tree.device);
    ops::cuda::HierarchyPlan order(ops::Clouds(queries), false);
    const Scratch<std::byte> memory(order.bytes(), raw(stream));
    order.place(memory.get(), raw(stream));
    ops::cuda::build_hierarchies(&order, nullptr, raw(stream));
    const int64_t rows = int64_t{order.view().leaves} * ops::cuda::kLeafPoints;
    wind<<<blocks_for(rows, kThreads), kThreads, 0, raw(stream)>>>(tree.view, order.view().points, rows,
                                                                   accuracy * accuracy, winding.data());
    STIPPLE_CHECK_LAUNCH(wind);
}

void negate_inside(const WindingHierarchy& tree, View<const float, 2> queries, View<float, 1> distances, float accuracy,
                   Stream stream) {
    const CurrentDevice current(tree.device);
    const int64_t n = queries.size(0);
    const Scratch<float> winding(n, raw(stream));
    winding_number(tree, queries, View<float, 1>(winding.get(), {n}, tree.device), accuracy, stream);
    negate_where_inside<<<blocks_for(n, kThreads), kThreads, 0, raw(stream)>>>(winding.get(), distances.data(), n);
    STIPPLE_CHECK_LAUNCH(negate_where_inside);
}

void is_inside(const WindingHierarchy& tree, View<const float, 2> queries, View<uint8_t, 1> inside, float accuracy,
               Stream stream) {
    const CurrentDevice current(tree.device);
    const int64_t n = queries.size(0);
    const Scratch<float> winding(n, raw(stream));
    winding_number(tree, queries, View<float, 1>(winding.get(), {n}, tree.device), accuracy, stream);
    mark_inside<<<blocks_for(n, kThreads), kThreads, 0, raw(stream)>>>(winding.get(), inside.data(), n);
    STIPPLE_CHECK_LAUNCH(mark_inside);
}

void point_areas(View<const float, 2> distances_sq, View<const int32_t, 2> neighbours, View<const float, 2> normals,
                 int64_t first, View<float, 1> areas, Stream stream) {
    const CurrentDevice current(areas.device());
    const int64_t rows = distances_sq.size(0);
    write_areas<<<blocks_for(rows, kThreads), kThreads, 0, raw(stream)>>>(
        distances_sq.data(), neighbours.data(), distances_sq.size(1), normals.data(), first, rows, areas.data());
    STIPPLE_CHECK_LAUNCH(write_areas);
}

}  // namespace stipple::geometry::cuda
