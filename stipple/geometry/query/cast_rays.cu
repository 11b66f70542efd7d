#include <algorithm>
#include <cub/device/device_scan.cuh>

#include "stipple/core/parallel.h"
#include "stipple/geometry/query/mesh_search.cuh"
#include "stipple/geometry/query/ray_order.h"
#include "stipple/ops/common/warp.cuh"

namespace stipple::geometry::cuda {
namespace {

using ops::cuda::blocks_for;
using ops::cuda::from_ordered_bits;
using ops::cuda::Scratch;

constexpr int kCastRaysThreads = 128;
constexpr int kKeyBits = 30;
constexpr int64_t kFewRays = 4096;  // not worth a sort

struct RayRows {
    const float *origins, *directions;
    int64_t origin_stride, direction_stride;
    float t_near, t_far;
    int32_t count;
};

struct DeviceBounds {
    float low[3], high[3], largest;

    __device__ explicit DeviceBounds(const uint32_t* bits) {
        largest = 0;
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = from_ordered_bits(bits[axis]);
            high[axis] = -from_ordered_bits(bits[3 + axis]);
            largest = fmaxf(largest, fmaxf(-low[axis], high[axis]));
        }
    }
};

__global__ void __launch_bounds__(kCastRaysThreads) compute_keys(RayRows rays, const uint32_t* bounds, uint32_t* keys) {
    const int64_t row = int64_t{blockIdx.x} * kCastRaysThreads + threadIdx.x;
    if (row >= rays.count) return;
    const DeviceBounds box(bounds);
    keys[row] = ray_key(make_ray_grid(box.low, box.high), rays.origins + row * rays.origin_stride,
                        rays.directions + row * rays.direction_stride);
}

/// One ray on its way through the boxes, and what its searches share.
struct RaySearch {
    float origin[3], direction[3];
    float t_near, t_far;
    ShearedRay sheared;
    float slack;
    // Against boxes the direction is scaled by a power of two to a length near 1. A box is taken larger than it is by
    // 2^-20 of the largest number about: many roundings. What overflows becomes NaN, which limits nothing.
    float inverse[3], enter_offset[3], leave_offset[3];
    float scale, low, limit;  // of t, scaled

    /// False for a ray that hits nothing by contract.
    __device__ bool begin(const RayRows& rays, int64_t row, float largest) {
        bool finite = true;
        float longest = 0;
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            origin[axis] = rays.origins[row * rays.origin_stride + axis];
            direction[axis] = rays.directions[row * rays.direction_stride + axis];
            finite = finite && isfinite(origin[axis]) && isfinite(direction[axis]);
            longest = fmaxf(longest, fabsf(direction[axis]));
        }
        if (!finite || longest == 0) return false;
        t_near = rays.t_near;
        t_far = rays.t_far;
        sheared = shear_ray({origin[0], origin[1], origin[2]}, {direction[0], direction[1], direction[2]});
        slack = ray_slack(origin, direction, largest);
        int exponent = 0;
        frexpf(longest, &exponent);
        exponent = max(-120, min(120, exponent));
        scale = ldexpf(1.0f, exponent);
        const float unscale = ldexpf(1.0f, -exponent);
        const float reach = fmaxf(fabsf(origin[0]), fmaxf(fabsf(origin[1]), fabsf(origin[2]))) + largest;
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            const float d = direction[axis] * unscale;
            inverse[axis] = 1 / (fabsf(d) > 1e-18f ? d : copysignf(1e-18f, d));
            const float at = origin[axis] * inverse[axis], error = 0x1p-20f * reach * fabsf(inverse[axis]);
            enter_offset[axis] = -at - error;
            leave_offset[axis] = error - at;
        }
        low = t_near * scale * (1 - 0x1p-20f);
        limit = t_far * scale * (1 + 0x1p-20f);
        return true;
    }

    __device__ void keys(const BoxNode* node, uint32_t (&keys)[kFanout]) const {
        float enter[kFanout] = {low, low, low, low}, leave[kFanout] = {limit, limit, limit, limit};
        bool is_there[kFanout];
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            const bool forward = inverse[axis] > 0;
            const float4 first4 = __ldg(&node->sides[forward ? axis : 3 + axis]);
            const float4 last4 = __ldg(&node->sides[forward ? 3 + axis : axis]);
            const float first[kFanout] = {first4.x, first4.y, first4.z, first4.w};
            const float last[kFanout] = {last4.x, last4.y, last4.z, last4.w};
#pragma unroll
            for (int i = 0; i < kFanout; ++i) {
                enter[i] = fmaxf(enter[i], fmaf(first[i], inverse[axis], enter_offset[axis]));
                leave[i] = fminf(leave[i], fmaf(last[i], inverse[axis], leave_offset[axis]));
                is_there[i] = fabsf(first[i]) < INFINITY;
            }
        }
#pragma unroll
        for (int i = 0; i < kFanout; ++i)
            keys[i] = is_there[i] && enter[i] <= leave[i] ? child_key(enter[i], i) : kMissed;
    }
    __device__ float bound() const {
        return limit;
    }

    /// Whether the face is hit within the range, and where.
    __device__ bool meets(float4 a, float4 b, float4 c, OnRay& met) const {
        const float corners[3][3] = {{a.x, a.y, a.z}, {b.x, b.y, b.z}, {c.x, c.y, c.z}};
        if (!may_hit(origin, direction, slack, corners[0], corners[1], corners[2])) return false;
        const Triangle triangle = to_triangle(a, b, c);
        if (!passes_through(sheared, triangle)) return false;
        met = meet_plane(sheared.origin, {direction[0], direction[1], direction[2]}, triangle);
        return met.t >= t_near && met.t <= t_far;
    }
};

struct FirstSearch : RaySearch {
    FirstHit best;

    __device__ bool face(float4 a, float4 b, float4 c, int64_t) {
        OnRay met;
        if (meets(a, b, c, met) && best.offer(met, face_of(a))) limit = best.t * scale * (1 + 0x1p-20f);
        return true;
    }
};

struct AnySearch : RaySearch {
    bool found = false;

    __device__ bool face(float4 a, float4 b, float4 c, int64_t) {
        OnRay met;
        found = meets(a, b, c, met);
        return !found;
    }
};

struct Record {
    float t;
    int32_t face;
    float barycentrics[3];
};

struct AllSearch : RaySearch {
    Record* to = nullptr;  // null: count only
    int64_t count = 0;

    __device__ bool face(float4 a, float4 b, float4 c, int64_t) {
        OnRay met;
        if (!meets(a, b, c, met)) return true;
        if (to) {
            to[count] = {met.t, face_of(a), {}};
            write_barycentrics(met.v, met.w, to[count].barycentrics);
        }
        ++count;
        return true;
    }
};

/// A thread takes a ray; neighbours in a warp cross the mesh's box at like places.
template <class Search>
__device__ bool cast(const MeshHierarchyView& mesh, const RayRows& rays, int64_t row, Search& search) {
    if (mesh.faces == 0 || !search.begin(rays, row, DeviceBounds(mesh.bounds).largest)) return false;
    walk(mesh, search);
    return true;
}

struct CastRaysOutputs {
    float* t;
    int32_t* faces;
    float* barycentrics;
};

__global__ void __launch_bounds__(kCastRaysThreads)
    find_first(const __grid_constant__ MeshHierarchyView mesh, const __grid_constant__ RayRows rays,
               const int32_t* order, CastRaysOutputs to) {
    const int64_t place = int64_t{blockIdx.x} * kCastRaysThreads + threadIdx.x;
    if (place >= rays.count) return;
    const int64_t row = order ? order[place] : place;
    FirstSearch search;
    cast(mesh, rays, row, search);
    const FirstHit& best = search.best;
    if (to.t) to.t[row] = best.t;
    if (to.faces) to.faces[row] = best.face;
    if (to.barycentrics) {
        float weights[3] = {0, 0, 0};
        if (best.face >= 0) write_barycentrics(best.v, best.w, weights);
        for (int k = 0; k < 3; ++k) to.barycentrics[3 * row + k] = weights[k];
    }
}

__global__ void __launch_bounds__(kCastRaysThreads)
    find_any(const __grid_constant__ MeshHierarchyView mesh, const __grid_constant__ RayRows rays, const int32_t* order,
             uint8_t* to) {
    const int64_t place = int64_t{blockIdx.x} * kCastRaysThreads + threadIdx.x;
    if (place >= rays.count) return;
    const int64_t row = order ? order[place] : place;
    AnySearch search;
    cast(mesh, rays, row, search);
    to[row] = search.found;
}

/// counts [m + 1], the last 0, when records is null; else the records of every ray from its offset on.
__global__ void __launch_bounds__(kCastRaysThreads)
    find_all(const __grid_constant__ MeshHierarchyView mesh, const __grid_constant__ RayRows rays, const int32_t* order,
             int64_t* counts, const int64_t* offsets, Record* records) {
    const int64_t place = int64_t{blockIdx.x} * kCastRaysThreads + threadIdx.x;
    if (place >= rays.count) return;
    const int64_t row = order ? order[place] : place;
    AllSearch search;
    if (records) search.to = records + offsets[row];
    cast(mesh, rays, row, search);
    if (!records) counts[row] = search.count;
}

RayRows rows_of(const Rays& rays, int64_t begin, int64_t n) {
    return {rays.origins.data() + begin * rays.origins.stride(0),
            rays.directions.data() + begin * rays.directions.stride(0),
            rays.origins.stride(0),
            rays.directions.stride(0),
            rays.t_near,
            std::min(rays.t_far, std::numeric_limits<float>::max()),
            static_cast<int32_t>(n)};
}

Scratch<int32_t> order_rays(const MeshHierarchyView& mesh, const RayRows& rays, cudaStream_t stream) {
    if (rays.count <= kFewRays || mesh.faces == 0) return {};
    Scratch<uint32_t> keys(rays.count, stream);
    compute_keys<<<blocks_for(rays.count, kCastRaysThreads), kCastRaysThreads, 0, stream>>>(rays, mesh.bounds,
                                                                                            keys.get());
    STIPPLE_CHECK_LAUNCH(compute_keys);
    return sort_rows(keys, kKeyBits, stream);
}

/// Calls launch(rays, order, first row) for parts of the rays that a launch can take.
template <class Launch>
void for_parts(const MeshHierarchyView& mesh, const Rays& rays, cudaStream_t stream, const Launch& launch) {
    for (int64_t begin = 0; begin < rays.origins.size(0); begin += kMostRows) {
        const RayRows rows = rows_of(rays, begin, std::min(kMostRows, rays.origins.size(0) - begin));
        const Scratch<int32_t> order = order_rays(mesh, rows, stream);
        launch(rows, order.get(), begin);
    }
}

}  // namespace

void first_hit(const MeshIndex& index, const Rays& rays, const RayHits& hits, Stream on) {
    const ops::cuda::CurrentDevice current(index.device());
    const cudaStream_t stream = ops::cuda::raw(on);
    const MeshHierarchyView& mesh = index.on_cuda().view;
    const auto part = [](auto* data, int64_t at) { return data ? data + at : nullptr; };
    for_parts(mesh, rays, stream, [&](const RayRows& rows, const int32_t* order, int64_t begin) {
        const CastRaysOutputs to = {part(hits.t.data(), begin), part(hits.faces.data(), begin),
                                    part(hits.barycentrics.data(), 3 * begin)};
        find_first<<<blocks_for(rows.count, kCastRaysThreads), kCastRaysThreads, 0, stream>>>(mesh, rows, order, to);
        STIPPLE_CHECK_LAUNCH(find_first);
    });
}

void any_hit(const MeshIndex& index, const Rays& rays, View<uint8_t, 1> hit, Stream on) {
    const ops::cuda::CurrentDevice current(index.device());
    const cudaStream_t stream = ops::cuda::raw(on);
    const MeshHierarchyView& mesh = index.on_cuda().view;
    for_parts(mesh, rays, stream, [&](const RayRows& rows, const int32_t* order, int64_t begin) {
        find_any<<<blocks_for(rows.count, kCastRaysThreads), kCastRaysThreads, 0, stream>>>(mesh, rows, order,
                                                                                            hit.data() + begin);
        STIPPLE_CHECK_LAUNCH(find_any);
    });
}

AllHits all_hits(const MeshIndex& index, const Rays& rays, Stream on) {
    const ops::cuda::CurrentDevice current(index.device());
    const cudaStream_t stream = ops::cuda::raw(on);
    const MeshHierarchyView& mesh = index.on_cuda().view;
    AllHits result;
    result.offsets.reserve(static_cast<size_t>(rays.origins.size(0)) + 1);
    result.offsets.push_back(0);
    for_parts(mesh, rays, stream, [&](const RayRows& rows, const int32_t* order, int64_t) {
        const int64_t m = rows.count;
        Scratch<int64_t> counts(m + 1, stream), offsets(m + 1, stream);
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(counts.get() + m, 0, sizeof(int64_t), stream));
        const unsigned blocks = blocks_for(m, kCastRaysThreads);
        find_all<<<blocks, kCastRaysThreads, 0, stream>>>(mesh, rows, order, counts.get(), nullptr, nullptr);
        STIPPLE_CHECK_LAUNCH(find_all);
        size_t bytes = 0;
        STIPPLE_CHECK_CUDA(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts.get(), offsets.get(), m + 1, stream));
        const Scratch<std::byte> scratch(static_cast<int64_t>(bytes), stream);
        STIPPLE_CHECK_CUDA(
            cub::DeviceScan::ExclusiveSum(scratch.get(), bytes, counts.get(), offsets.get(), m + 1, stream));
        std::vector<int64_t> begins(static_cast<size_t>(m) + 1);
        STIPPLE_CHECK_CUDA(cudaMemcpyAsync(begins.data(), offsets.get(), begins.size() * sizeof(int64_t),
                                           cudaMemcpyDeviceToHost, stream));
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
        const int64_t total = begins.back(), before = result.offsets.back();
        std::vector<Record> found(static_cast<size_t>(total));
        if (total > 0) {
            const Scratch<Record> records(total, stream);
            find_all<<<blocks, kCastRaysThreads, 0, stream>>>(mesh, rows, order, nullptr, offsets.get(), records.get());
            STIPPLE_CHECK_LAUNCH(find_all);
            STIPPLE_CHECK_CUDA(cudaMemcpyAsync(found.data(), records.get(), found.size() * sizeof(Record),
                                               cudaMemcpyDeviceToHost, stream));
            STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
        }
        result.t.resize(static_cast<size_t>(before + total));
        result.faces.resize(result.t.size());
        result.barycentrics.resize(result.t.size());
        parallel_for(m, 1024, [&](int64_t from, int64_t to) {
            for (int64_t ray = from; ray < to; ++ray) {
                std::sort(found.begin() + begins[ray], found.begin() + begins[ray + 1],
                          [](const Record& a, const Record& b) { return a.t != b.t ? a.t < b.t : a.face < b.face; });
                for (int64_t i = begins[ray]; i < begins[ray + 1]; ++i) {
                    result.t[before + i] = found[i].t;
                    result.faces[before + i] = found[i].face;
                    for (int k = 0; k < 3; ++k) result.barycentrics[before + i][k] = found[i].barycentrics[k];
                }
            }
        });
        for (int64_t ray = 0; ray < m; ++ray) result.offsets.push_back(before + begins[ray + 1]);
    });
    return result;
}

}  // namespace stipple::geometry::cuda
