// The nearest points of clouds so small that an index would take longer: every query against every point.

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/search/neighbours_cuda.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kKnnFewWarps = 4;                         // queries of a block
constexpr uint64_t kNone = uint64_t{0x7f800000} << 32;  // +infinity: nothing there is found

struct FewPoints {
    const float *points, *queries;
    int64_t point_stride, query_stride;
    DeviceBatch of_points, of_queries;
};

/// Distance and index in one number, in the order of neighbours; a NaN is above every distance.
__device__ uint64_t key_of(const float* q, const float* p, int32_t index) {
    const float dx = __fsub_rn(q[0], p[0]), dy = __fsub_rn(q[1], p[1]), dz = __fsub_rn(q[2], p[2]);
    const float square = __fadd_rn(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy)), __fmul_rn(dz, dz));
    return uint64_t{__float_as_uint(square)} << 32 | static_cast<uint32_t>(index);
}

/// A warp for a query: each lane keeps the K nearest of its share of the points, sorted; the warp then takes the
/// smallest head of 32 lists, k times.
template <int K>
__global__ void __launch_bounds__(32 * kKnnFewWarps)
    search_few(FewPoints in, int64_t m, int32_t k, int32_t* __restrict__ indices, float* __restrict__ distances) {
    const int64_t row = int64_t{blockIdx.x} * kKnnFewWarps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (row >= m) return;
    const int64_t cloud = in.of_queries.cloud_of(row), first = in.of_points.begin(cloud);
    const auto n = static_cast<int32_t>(in.of_points.end(cloud) - first);
    const float* const at = in.queries + row * in.query_stride;
    const float q[3] = {at[0], at[1], at[2]};
    uint64_t nearest[K];
#pragma unroll
    for (int i = 0; i < K; ++i) nearest[i] = kNone;
    for (int32_t p = lane; p < n; p += 32) {
        uint64_t key = key_of(q, in.points + (first + p) * in.point_stride, p);
        if (key >= nearest[K - 1]) continue;
#pragma unroll
        for (int i = 0; i < K; ++i) {
            const uint64_t here = nearest[i];
            nearest[i] = min(here, key);
            key = max(here, key);
        }
    }
    for (int32_t i = 0; i < k; ++i) {
        const auto high = static_cast<uint32_t>(nearest[0] >> 32);
        const uint32_t least = warp_min(high);
        const uint32_t index = warp_min(high == least ? static_cast<uint32_t>(nearest[0]) : 0xffffffffu);
        const bool is_found = least < 0x7f800000u;
        if (lane == 0) {
            if (indices) indices[row * k + i] = is_found ? static_cast<int32_t>(index) : -1;
            if (distances) distances[row * k + i] = is_found ? __uint_as_float(least) : INFINITY;
        }
        if (nearest[0] == (uint64_t{least} << 32 | index)) {
#pragma unroll
            for (int j = 0; j + 1 < K; ++j) nearest[j] = nearest[j + 1];
            nearest[K - 1] = kNone;
        }
    }
}

}  // namespace

void nearest_of_few(const Clouds& points, const Clouds& queries, int32_t* indices, float* distances, int32_t k,
                    Stream stream_of_call) {
    const CurrentDevice current(points.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedBatch of_points(points.batch, stream), of_queries(queries.batch, stream);
    const FewPoints in = {points.rows.data(),     queries.rows.data(), points.rows.stride(0),
                          queries.rows.stride(0), of_points.view(),    of_queries.view()};
    const int64_t m = queries.rows.size(0);
    if (m == 0) return;
    const auto launch = [&](auto kernel) {
        kernel<<<blocks_for(m, kKnnFewWarps), 32 * kKnnFewWarps, 0, stream>>>(in, m, k, indices, distances);
        STIPPLE_CHECK_LAUNCH(search_few);
    };
    if (k == 1) return launch(search_few<1>);
    if (k <= 4) return launch(search_few<4>);
    if (k <= 8) return launch(search_few<8>);
    if (k <= 16) return launch(search_few<16>);
    launch(search_few<32>);
}

}  // namespace stipple::ops::cuda
