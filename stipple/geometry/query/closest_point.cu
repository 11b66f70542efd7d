#include <algorithm>

#include "stipple/geometry/query/mesh_search.cuh"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/space_curve.h"

namespace stipple::geometry::cuda {
namespace {

using ops::cuda::blocks_for;
using ops::cuda::from_ordered_bits;
using ops::cuda::Scratch;

constexpr int kClosestPointThreads = 128;
constexpr int kClosestPointCurveBits = 10;
constexpr int64_t kFewQueries = 4096;  // not worth a sort

struct Queries {
    const float* data;
    int64_t stride;
    int32_t count;

    __device__ float3 operator()(int64_t row) const {
        const float* p = data + row * stride;
        return make_float3(p[0], p[1], p[2]);
    }
};

/// Places on a curve through a cube twice as wide as the mesh; queries outside go to its outer cells.
__global__ void __launch_bounds__(kClosestPointThreads)
    compute_keys(Queries queries, const uint32_t* bounds, uint32_t* keys) {
    const int64_t row = int64_t{blockIdx.x} * kClosestPointThreads + threadIdx.x;
    if (row >= queries.count) return;
    const float3 p = queries(row);
    float low[3], extent = 0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        low[axis] = from_ordered_bits(bounds[axis]);
        extent = fmaxf(extent, -from_ordered_bits(bounds[3 + axis]) - low[axis]);
    }
    constexpr uint32_t kCells = 1u << kClosestPointCurveBits;
    const float scale = extent > 0 ? 0.5f * static_cast<float>(kCells) / extent : 0, margin = 0.5f * extent;
    keys[row] = static_cast<uint32_t>(ops::hilbert_code(
        ops::curve_cell(p.x, low[0] - margin, scale, kCells), ops::curve_cell(p.y, low[1] - margin, scale, kCells),
        ops::curve_cell(p.z, low[2] - margin, scale, kCells), kClosestPointCurveBits));
}

struct NearestSearch {
    float3 query;
    NearestFace best;
    int64_t best_place = 0;  // of its corners
    float limit = INFINITY;  // a squared distance above the best by more than float boxes are wrong

    __device__ void keys(const BoxNode* node, uint32_t (&keys)[kFanout]) const {
        float dist_sq[kFanout] = {0, 0, 0, 0};
        bool is_there[kFanout];
        const float at[3] = {query.x, query.y, query.z};
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            const float4 low4 = __ldg(&node->sides[axis]), high4 = __ldg(&node->sides[3 + axis]);
            const float low[kFanout] = {low4.x, low4.y, low4.z, low4.w};
            const float high[kFanout] = {high4.x, high4.y, high4.z, high4.w};
#pragma unroll
            for (int i = 0; i < kFanout; ++i) {
                const float away = fmaxf(fmaxf(low[i] - at[axis], at[axis] - high[i]), 0.0f);
                dist_sq[i] = fmaf(away, away, dist_sq[i]);
                is_there[i] = low[i] <= high[i];
            }
        }
#pragma unroll
        for (int i = 0; i < kFanout; ++i)
            keys[i] = is_there[i] && dist_sq[i] <= limit ? child_key(dist_sq[i], i) : kMissed;
    }
    __device__ float bound() const {
        return limit;
    }
    __device__ bool face(float4 a, float4 b, float4 c, int64_t place) {
        if (best.offer(closest_on_triangle({query.x, query.y, query.z}, to_triangle(a, b, c)), face_of(a))) {
            limit = fmaf(__double2float_ru(best.place.dist_sq), 1 + 0x1p-18f, 1e-37f);
            best_place = place;
        }
        return true;
    }
};

struct Outputs {
    float* distances;
    int32_t* faces;
    float* barycentrics;
    float* points;
};

/// A thread takes a query; neighbours in a warp are neighbours in space, so they read the same nodes.
__global__ void __launch_bounds__(kClosestPointThreads)
    find_nearest(const __grid_constant__ MeshHierarchyView mesh, Queries queries, const int32_t* order, Outputs to) {
    const int64_t place = int64_t{blockIdx.x} * kClosestPointThreads + threadIdx.x;
    if (place >= queries.count) return;
    const int64_t row = order ? order[place] : place;
    NearestSearch search;
    search.query = queries(row);
    const bool finite = isfinite(search.query.x) && isfinite(search.query.y) && isfinite(search.query.z);
    if (finite && mesh.faces > 0) walk(mesh, search);
    const NearestFace& best = search.best;
    if (to.distances) to.distances[row] = best.distance;
    if (to.faces) to.faces[row] = best.face;
    if (to.barycentrics) {
        float weights[3] = {0, 0, 0};
        if (best.face >= 0) write_barycentrics(best.place.v, best.place.w, weights);
        for (int k = 0; k < 3; ++k) to.barycentrics[3 * row + k] = weights[k];
    }
    if (to.points) {
        float point[3] = {NAN, NAN, NAN};
        if (best.face >= 0) {
            const float4* corners = mesh.corners + 3 * search.best_place;
            write_point(best.place, to_triangle(corners[0], corners[1], corners[2]), point);
        }
        for (int k = 0; k < 3; ++k) to.points[3 * row + k] = point[k];
    }
}

}  // namespace

void closest_point(const MeshIndex& index, View<const float, 2> queries, const ClosestPoints& found, Stream on) {
    const ops::cuda::CurrentDevice current(index.device());
    const cudaStream_t stream = ops::cuda::raw(on);
    const MeshHierarchyView& mesh = index.on_cuda().view;
    const auto part = [](auto* data, int64_t at) { return data ? data + at : nullptr; };
    for (int64_t begin = 0; begin < queries.size(0); begin += kMostRows) {
        const int64_t n = std::min(kMostRows, queries.size(0) - begin);
        const Queries rows = {queries.data() + begin * queries.stride(0), queries.stride(0), static_cast<int32_t>(n)};
        Scratch<int32_t> order;
        if (n > kFewQueries && mesh.faces > 0) {
            Scratch<uint32_t> keys(n, stream);
            compute_keys<<<blocks_for(n, kClosestPointThreads), kClosestPointThreads, 0, stream>>>(rows, mesh.bounds,
                                                                                                   keys.get());
            STIPPLE_CHECK_LAUNCH(compute_keys);
            order = sort_rows(keys, 3 * kClosestPointCurveBits, stream);
        }
        const Outputs to = {part(found.distances.data(), begin), part(found.faces.data(), begin),
                            part(found.barycentrics.data(), 3 * begin), part(found.points.data(), 3 * begin)};
        find_nearest<<<blocks_for(n, kClosestPointThreads), kClosestPointThreads, 0, stream>>>(mesh, rows, order.get(),
                                                                                               to);
        STIPPLE_CHECK_LAUNCH(find_nearest);
    }
}

}  // namespace stipple::geometry::cuda
