#include <algorithm>
#include <bit>
#include <cstring>
#include <cub/block/block_radix_sort.cuh>

#include "stipple/ops/common/radix_sort.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/search/neighbours_cuda.h"
#include "stipple/ops/search/point_hierarchy.h"
#include "stipple/ops/space_curve.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kPointHierarchyThreads = 256;
constexpr int kPointHierarchyWarps = kPointHierarchyThreads / 32;
constexpr int kDeviceBits = 21;  // of a coordinate's cell: 63-bit codes where the whole device sorts
constexpr int64_t kLargestInBlock = 8192;
constexpr int kRowsPerThread = 16;  // of the bounds' reduction

struct Build {
    HierarchyView to;
    RowsView rows;
};

struct Builds {
    Build build[2];
};

__device__ bool finite(float3 p) {
    return isfinite(p.x) && isfinite(p.y) && isfinite(p.z);
}

__device__ float4 padding() {
    return make_float4(__uint_as_float(0x7fc00000u), 0, 0, __uint_as_float(0xffffffffu));
}

/// The scale of a curve's cells, the same along every axis: cubes make the most compact runs.
__device__ float cells_per_unit(float3 low, float3 high, uint32_t cells) {
    const float extent = fmaxf(high.x - low.x, fmaxf(high.y - low.y, high.z - low.z));
    return extent > 0 ? static_cast<float>(cells) / extent : 0;
}

__device__ uint64_t code_of(float3 p, float3 low, float scale, int bits) {
    const uint32_t cells = 1u << bits;
    if (!finite(p)) return (uint64_t{1} << 3 * bits) - 1;
    return hilbert_code(curve_cell(p.x, low.x, scale, cells), curve_cell(p.y, low.y, scale, cells),
                        curve_cell(p.z, low.z, scale, cells), bits);
}

/// The box of one point (or node) a lane, written by lane 0.
__device__ void write_box(const HierarchyView& to, int64_t node, float3 low, float3 high, uint32_t lowest, int lane) {
    low = make_float3(warp_min(low.x), warp_min(low.y), warp_min(low.z));
    high = make_float3(warp_max(high.x), warp_max(high.y), warp_max(high.z));
    lowest = warp_min(lowest);
    if (lane != 0) return;
    to.lows[node] = make_float4(low.x, low.y, low.z, __uint_as_float(lowest));
    to.highs[node] = make_float4(high.x, high.y, high.z, 0);
}

__device__ void write_leaf_box(const HierarchyView& to, int64_t leaf, float4 p, int lane) {
    const bool real = !isnan(p.x);
    const float3 low = real ? make_float3(p.x, p.y, p.z) : make_float3(INFINITY, INFINITY, INFINITY);
    const float3 high = real ? make_float3(p.x, p.y, p.z) : make_float3(-INFINITY, -INFINITY, -INFINITY);
    write_box(to, leaf, low, high, real ? __float_as_uint(p.w) : 0xffffffffu, lane);
}

/// A node of level > 0 from its children; node counts from the cloud's first.
__device__ void write_parent_box(const HierarchyView& to, int level, int32_t cloud, int32_t node, int lane) {
    const int32_t child = node * kFanout + lane;
    float4 low = make_float4(INFINITY, INFINITY, INFINITY, __uint_as_float(0xffffffffu));
    float4 high = make_float4(-INFINITY, -INFINITY, -INFINITY, 0);
    if (child < to.nodes(level - 1, cloud)) {
        const int64_t at = to.first_node(level - 1, cloud) + int64_t{child};
        low = to.lows[at];
        high = to.highs[at];
    }
    write_box(to, to.first_node(level, cloud) + int64_t{node}, make_float3(low.x, low.y, low.z),
              make_float3(high.x, high.y, high.z), __float_as_uint(low.w), lane);
}

/// A whole cloud in one block: bounds, codes, sort in shared memory, leaves and boxes. Deterministic: the sort is
/// stable.
/// Codes have 3 * Bits bits, of which the upper 4 * Passes are sorted by. A coarser order costs nothing but a few more
/// leaves in a search; 2^(4 * Passes) cells are many more than points.
template <int Threads, int Items, int Bits, int Passes>
__global__ void __launch_bounds__(Threads) build_in_block(const __grid_constant__ Builds builds) {
    using Sort = cub::BlockRadixSort<uint32_t, Threads, Items, uint16_t>;
    __shared__ union {
        typename Sort::TempStorage sort;
        float bounds[6][32];
    } shared;

    const int32_t first_clouds = builds.build[0].to.clouds;
    const bool second = static_cast<int32_t>(blockIdx.x) >= first_clouds;
    const Build& build = builds.build[second];
    const HierarchyView& to = build.to;
    const int32_t cloud = static_cast<int32_t>(blockIdx.x) - (second ? first_clouds : 0);
    const int64_t begin = to.batch.begin(cloud);
    const int n = static_cast<int>(to.batch.end(cloud) - begin);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;

    float3 points[Items];
    float3 low = make_float3(INFINITY, INFINITY, INFINITY), high = make_float3(-INFINITY, -INFINITY, -INFINITY);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
        const int index = thread * Items + i;
        points[i] = index < n ? build.rows.point(begin + index) : make_float3(INFINITY, 0, 0);
        if (!finite(points[i])) continue;
        low = make_float3(fminf(low.x, points[i].x), fminf(low.y, points[i].y), fminf(low.z, points[i].z));
        high = make_float3(fmaxf(high.x, points[i].x), fmaxf(high.y, points[i].y), fmaxf(high.z, points[i].z));
    }
    const float mine[6] = {low.x, low.y, low.z, -high.x, -high.y, -high.z};
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        const float lowest = warp_min(mine[i]);
        if (lane == 0) shared.bounds[i][warp] = lowest;
    }
    __syncthreads();
    float all[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) all[i] = warp_min(lane < Threads / 32 ? shared.bounds[i][lane] : INFINITY);
    __syncthreads();  // the sort takes the same memory
    low = make_float3(all[0], all[1], all[2]);
    high = make_float3(-all[3], -all[4], -all[5]);

    const float scale = cells_per_unit(low, high, 1u << Bits);
    uint32_t codes[Items];
    uint16_t order[Items];
#pragma unroll
    for (int i = 0; i < Items; ++i) {
        codes[i] = static_cast<uint32_t>(code_of(points[i], low, scale, Bits));
        order[i] = static_cast<uint16_t>(thread * Items + i);
    }
    // Padding and non-finite points have the highest code; padding has the higher positions, so it stays behind.
    static_assert(4 * Passes <= 3 * Bits);
    Sort(shared.sort).SortBlockedToStriped(codes, order, 3 * Bits - 4 * Passes, 3 * Bits);

    const int32_t first_leaf = to.first_node(0, cloud), leaves = to.nodes(0, cloud);
#pragma unroll
    for (int i = 0; i < Items; ++i) {  // 32 lanes hold the 32 points of a leaf
        const int32_t leaf = (i * Threads + thread) / kLeafPoints;
        if (leaf >= leaves) continue;
        const float4 p = order[i] < n ? build.rows.leaf_point(begin + order[i], order[i]) : padding();
        to.points[int64_t{first_leaf + leaf} * kLeafPoints + lane] = p;
        if (to.lows) write_leaf_box(to, first_leaf + leaf, p, lane);
    }
    if (!to.lows) return;
    for (int level = 1; level < to.levels; ++level) {
        __syncthreads();
        for (int32_t node = warp; node < to.nodes(level, cloud); node += Threads / 32)
            write_parent_box(to, level, cloud, node, lane);
    }
}

/// The bounds of every cloud's finite points by integer minima, so in any order the same: ordered bits of the lowest
/// x, y, z, then of the lowest -x, -y, -z. bounds begin as all ones.
__global__ void __launch_bounds__(kPointHierarchyThreads)
    find_bounds(const __grid_constant__ Build build, uint32_t* bounds) {
    const int64_t row_begin = int64_t{blockIdx.x} * kPointHierarchyThreads * kRowsPerThread;
    const int64_t row_end = min(row_begin + kPointHierarchyThreads * kRowsPerThread, build.to.batch.rows);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t first_cloud = build.to.batch.cloud_of(row_begin);
    if (build.to.batch.cloud_of(row_end - 1) == first_cloud) {
        float lowest[6] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
        for (int64_t row = row_begin + threadIdx.x; row < row_end; row += kPointHierarchyThreads) {
            const float3 p = build.rows.point(row);
            if (!finite(p)) continue;
            const float values[6] = {p.x, p.y, p.z, -p.x, -p.y, -p.z};
#pragma unroll
            for (int i = 0; i < 6; ++i) lowest[i] = fminf(lowest[i], values[i]);
        }
#pragma unroll
        for (int i = 0; i < 6; ++i) {
            const uint32_t value = warp_min(ordered_bits(lowest[i]));
            uint32_t* to = bounds + 6 * first_cloud + i;
            if (lane == 0 && value < *to) atomicMin(to, value);
        }
        return;
    }
    for (int64_t row = row_begin + threadIdx.x; row < row_end; row += kPointHierarchyThreads) {
        const float3 p = build.rows.point(row);
        if (!finite(p)) continue;
        uint32_t* to = bounds + 6 * build.to.batch.cloud_of(row);
        const float values[6] = {p.x, p.y, p.z, -p.x, -p.y, -p.z};
#pragma unroll
        for (int i = 0; i < 6; ++i) {
            const uint32_t value = ordered_bits(values[i]);
            if (value < to[i]) atomicMin(to + i, value);
        }
    }
}

__global__ void __launch_bounds__(kPointHierarchyThreads)
    compute_codes(const __grid_constant__ Build build, const uint32_t* bounds, int bits, uint64_t* codes,
                  int32_t* order) {
    const int64_t row = int64_t{blockIdx.x} * kPointHierarchyThreads + threadIdx.x;
    if (row >= build.to.batch.rows) return;
    const int64_t cloud = build.to.batch.cloud_of(row);
    float lowest[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) lowest[i] = from_ordered_bits(bounds[6 * cloud + i]);
    const float3 low = make_float3(lowest[0], lowest[1], lowest[2]);
    const float3 high = make_float3(-lowest[3], -lowest[4], -lowest[5]);
    const float scale = cells_per_unit(low, high, 1u << bits);
    codes[row] = static_cast<uint64_t>(cloud) << 3 * bits | code_of(build.rows.point(row), low, scale, bits);
    order[row] = static_cast<int32_t>(row - build.to.batch.begin(cloud));
}

/// A warp gathers a leaf.
__global__ void __launch_bounds__(kPointHierarchyThreads)
    write_leaves(const __grid_constant__ Build build, const int32_t* order) {
    const HierarchyView& to = build.to;
    const int64_t leaf = int64_t{blockIdx.x} * kPointHierarchyWarps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (leaf >= to.leaves) return;
    const int32_t cloud = to.cloud_of(0, static_cast<int32_t>(leaf));
    const int64_t begin = to.batch.begin(cloud);
    const int64_t row = begin + (leaf - to.first_node(0, cloud)) * kLeafPoints + lane;  // sorted clouds stay in place
    float4 p = padding();
    if (row < to.batch.end(cloud)) {
        const int32_t index = order[row];
        p = build.rows.leaf_point(begin + index, static_cast<uint32_t>(index));
    }
    to.points[leaf * kLeafPoints + lane] = p;
    if (to.lows) write_leaf_box(to, leaf, p, lane);
}

/// A warp makes a node.
__global__ void __launch_bounds__(kPointHierarchyThreads)
    write_level(const __grid_constant__ HierarchyView to, int level, int32_t count) {
    const int64_t node = int64_t{blockIdx.x} * kPointHierarchyWarps + threadIdx.x / 32;
    if (node >= count) return;
    const int32_t cloud = to.cloud_of(level, static_cast<int32_t>(node));
    const int32_t local = static_cast<int32_t>(node) + to.level_begin[level] - to.first_node(level, cloud);
    write_parent_box(to, level, cloud, local, static_cast<int>(threadIdx.x) % 32);
}

/// A warp copies 32 rows of features; a non-finite row becomes one that begins with NaN.
__global__ void __launch_bounds__(kPointHierarchyThreads) write_tiles(const __grid_constant__ Build build) {
    const HierarchyView& to = build.to;
    const int64_t leaf = int64_t{blockIdx.x} * kPointHierarchyWarps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (leaf >= to.leaves) return;
    const int32_t cloud = to.cloud_of(0, static_cast<int32_t>(leaf));
    const int64_t row = to.batch.begin(cloud) + (leaf - to.first_node(0, cloud)) * kLeafPoints + lane;
    const bool real = row < to.batch.end(cloud);
    const float* from = build.rows.data + row * build.rows.stride;
    float* tile = to.tiles + leaf * kLeafPoints * to.dimension + lane;
    bool all_finite = real;
    for (int d = 0; d < to.dimension; ++d) {
        const float value = real ? from[d] : 0.0f;
        all_finite = all_finite && isfinite(value);
        tile[d * kLeafPoints] = value;
    }
    if (!all_finite) tile[0] = __uint_as_float(0x7fc00000u);
}

void sort_on_device(const Build& build, cudaStream_t stream) {
    const int64_t rows = build.to.batch.rows;
    const int cloud_bits = std::bit_width(static_cast<uint64_t>(build.to.clouds - 1));
    const int bits = std::min(kDeviceBits, (64 - cloud_bits) / 3);
    auto aligned = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };

    // Sizes first, so that one allocation holds all.
    const int64_t sort_bytes = sort_pairs_bytes(rows, 3 * bits + cloud_bits, stream);
    const int64_t bounds_bytes = aligned(int64_t{build.to.clouds} * 6 * sizeof(uint32_t));
    const int64_t code_bytes = aligned(rows * sizeof(uint64_t)), order_bytes = aligned(rows * sizeof(int32_t));
    const Scratch<std::byte> scratch(bounds_bytes + 2 * code_bytes + 2 * order_bytes + sort_bytes, stream);
    std::byte* at = scratch.get();
    auto take = [&at](int64_t bytes) {
        at += bytes;
        return at - bytes;
    };
    auto* bounds = reinterpret_cast<uint32_t*>(take(bounds_bytes));
    SortBuffer<uint64_t> codes;
    SortBuffer<int32_t> order;
    codes.current = reinterpret_cast<uint64_t*>(take(code_bytes));
    codes.spare = reinterpret_cast<uint64_t*>(take(code_bytes));
    order.current = reinterpret_cast<int32_t*>(take(order_bytes));
    order.spare = reinterpret_cast<int32_t*>(take(order_bytes));

    STIPPLE_CHECK_CUDA(cudaMemsetAsync(bounds, 0xff, static_cast<size_t>(bounds_bytes), stream));
    find_bounds<<<blocks_for(rows, kPointHierarchyThreads * kRowsPerThread), kPointHierarchyThreads, 0, stream>>>(
        build, bounds);
    STIPPLE_CHECK_LAUNCH(find_bounds);
    compute_codes<<<blocks_for(rows, kPointHierarchyThreads), kPointHierarchyThreads, 0, stream>>>(
        build, bounds, bits, codes.current, order.current);
    STIPPLE_CHECK_LAUNCH(compute_codes);
    sort_pairs(at, sort_bytes, codes, order, rows, 3 * bits + cloud_bits, stream);
    write_leaves<<<blocks_for(build.to.leaves, kPointHierarchyWarps), kPointHierarchyThreads, 0, stream>>>(
        build, order.current);
    STIPPLE_CHECK_LAUNCH(write_leaves);
}

template <int Threads, int Items, int Bits, int Passes>
void launch_in_block(const Builds& builds, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>(builds.build[0].to.clouds + builds.build[1].to.clouds);
    build_in_block<Threads, Items, Bits, Passes><<<blocks, Threads, 0, stream>>>(builds);
    STIPPLE_CHECK_LAUNCH(build_in_block);
}

void build_with_device_sort(const Build& build, cudaStream_t stream) {
    const HierarchyView& to = build.to;
    if (to.leaves == 0) return;
    sort_on_device(build, stream);
    if (!to.lows) return;
    for (int level = 1; level < to.levels; ++level) {
        const int32_t count = to.level_begin[level + 1] - to.level_begin[level];
        write_level<<<blocks_for(count, kPointHierarchyWarps), kPointHierarchyThreads, 0, stream>>>(to, level, count);
        STIPPLE_CHECK_LAUNCH(write_level);
    }
}

}  // namespace

HierarchyPlan::HierarchyPlan(const Clouds& points, bool with_boxes) {
    const Batch& batch = points.batch;
    rows_ = {points.rows.data(), points.rows.stride(0)};
    largest_ = batch.largest();
    view_.batch.clouds = batch.clouds();
    view_.batch.size = batch.is_dense() ? batch.largest() : 0;
    view_.batch.rows = batch.rows();
    view_.clouds = static_cast<int32_t>(batch.clouds());
    view_.dimension = static_cast<int32_t>(points.dimension());
    with_boxes = with_boxes && view_.dimension == 3;

    const int64_t clouds = batch.clouds();
    int64_t cover = kLeafPoints;  // points under a node
    view_.levels = 1;
    for (; with_boxes && largest_ > cover * kFanout; cover *= kFanout) ++view_.levels;

    // A ragged batch's tables are [clouds + 1] int64 rows, then [levels, clouds + 1] int32 nodes.
    if (!batch.is_dense()) {
        tables_.resize(clouds + 1 + ((clouds + 1) * view_.levels + 1) / 2);
        std::copy(batch.offsets().begin(), batch.offsets().end(), tables_.begin());
    }
    auto* first = reinterpret_cast<int32_t*>(tables_.data() + clouds + 1);
    int64_t nodes = 0;
    cover = kLeafPoints;
    for (int level = 0; level < view_.levels; ++level, cover *= kFanout) {
        view_.level_begin[level] = static_cast<int32_t>(nodes);
        if (batch.is_dense()) {
            const int64_t per_cloud = (batch.largest() + cover - 1) / cover;
            view_.per_cloud[level] = static_cast<int32_t>(per_cloud);
            nodes += clouds * per_cloud;
        } else {
            int64_t in_level = 0;
            for (int64_t cloud = 0; cloud <= clouds; ++cloud) {
                first[level * (clouds + 1) + cloud] = static_cast<int32_t>(in_level);
                if (cloud < clouds) in_level += (batch.size(cloud) + cover - 1) / cover;
            }
            nodes += in_level;
        }
        if (level == 0) view_.leaves = static_cast<int32_t>(nodes);
        STIPPLE_REQUIRE(nodes <= INT32_MAX, "{} points in {} clouds are too many for an index", batch.rows(), clouds);
    }
    view_.level_begin[view_.levels] = static_cast<int32_t>(nodes);

    auto take = [this](int64_t bytes) {
        const int64_t at = bytes_;
        bytes_ += (bytes + 255) / 256 * 256;
        return at;
    };
    take(static_cast<int64_t>(tables_.size() * sizeof(int64_t)));
    at_points_ = take(int64_t{view_.leaves} * kLeafPoints *
                      (view_.dimension == 3 ? sizeof(float4) : view_.dimension * sizeof(float)));
    if (!with_boxes) return;
    at_lows_ = take(nodes * sizeof(float4));
    at_highs_ = take(nodes * sizeof(float4));
}

void HierarchyPlan::place(std::byte* memory, cudaStream_t stream) {
    if (view_.leaves == 0) return;
    if (!tables_.empty()) {
        STIPPLE_CHECK_CUDA(
            cudaMemcpyAsync(memory, tables_.data(), tables_.size() * sizeof(int64_t), cudaMemcpyHostToDevice, stream));
        view_.batch.offsets = reinterpret_cast<const int64_t*>(memory);
        view_.first = reinterpret_cast<const int32_t*>(view_.batch.offsets + view_.clouds + 1);
    }
    if (view_.dimension == 3)
        view_.points = reinterpret_cast<float4*>(memory + at_points_);
    else
        view_.tiles = reinterpret_cast<float*>(memory + at_points_);
    if (at_highs_ == 0) return;
    view_.lows = reinterpret_cast<float4*>(memory + at_lows_);
    view_.highs = reinterpret_cast<float4*>(memory + at_highs_);
}

void build_hierarchies(const HierarchyPlan* first, const HierarchyPlan* second, cudaStream_t stream) {
    Builds builds;
    int64_t largest = 0;
    int count = 0;
    for (const HierarchyPlan* plan : {first, second}) {
        if (plan == nullptr || plan->view().leaves == 0) continue;
        builds.build[count++] = {plan->view(), plan->rows()};
        largest = std::max(largest, plan->largest());
    }
    if (count == 0) return;
    if (builds.build[0].to.dimension != 3) {
        for (int i = 0; i < count; ++i) {
            write_tiles<<<blocks_for(builds.build[i].to.leaves, kPointHierarchyWarps), kPointHierarchyThreads, 0,
                          stream>>>(builds.build[i]);
            STIPPLE_CHECK_LAUNCH(write_tiles);
        }
    } else if (largest <= 256) {
        launch_in_block<128, 2, 6, 4>(builds, stream);
    } else if (largest <= 1024) {
        launch_in_block<512, 2, 6, 4>(builds, stream);
    } else if (largest <= 2048) {
        launch_in_block<1024, 2, 6, 4>(builds, stream);
    } else if (largest <= kLargestInBlock) {
        launch_in_block<1024, kLargestInBlock / 1024, 7, 5>(builds, stream);
    } else {
        for (int i = 0; i < count; ++i) build_with_device_sort(builds.build[i], stream);
    }
}

PointHierarchy::PointHierarchy(const Clouds& points, cudaStream_t stream)
    : device(points.device()), batch(points.batch) {
    HierarchyPlan plan(points, /*with_boxes=*/true);
    memory = Scratch<std::byte>(plan.bytes(), stream);
    plan.place(memory.get(), stream);
    build_hierarchies(&plan, nullptr, stream);
    view = plan.view();
    rows = plan.rows();
}

PointHierarchy::~PointHierarchy() {
    // The default stream is that of the current device.
    int before = device.index;
    cudaGetDevice(&before);
    if (before != device.index) cudaSetDevice(device.index);
    memory = {};
    if (before != device.index) cudaSetDevice(before);
}

OrderedQueries::OrderedQueries(const PointHierarchy& index, const Clouds& queries, cudaStream_t stream) {
    const bool same_rows =
        queries.rows.data() == index.rows.data && queries.rows.stride(0) == index.rows.stride &&
        queries.batch.is_dense() == index.batch.is_dense() && queries.batch.clouds() == index.batch.clouds() &&
        queries.batch.largest() == index.batch.largest() && queries.batch.offsets() == index.batch.offsets();
    if (same_rows && index.view.dimension == 3) {
        view = index.view;
        rows = index.rows;
        return;
    }
    HierarchyPlan plan(queries, /*with_boxes=*/false);
    memory = Scratch<std::byte>(plan.bytes(), stream);
    plan.place(memory.get(), stream);
    build_hierarchies(&plan, nullptr, stream);
    view = plan.view();
}

std::shared_ptr<const PointHierarchy> build(const Clouds& points, Stream stream) {
    const CurrentDevice current(points.device());
    return std::make_shared<const PointHierarchy>(points, raw(stream));
}

}  // namespace stipple::ops::cuda
