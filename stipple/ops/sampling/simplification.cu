#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/common/warp.cuh"
#include "stipple/ops/simplification.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kMostSizes = 16, kThreads = 128, kTile = 256, kBackwardWarps = 4;

/// Sizes travel with the launch.
struct Sizes {
    int32_t of[kMostSizes] = {};
    int32_t count = 0;

    explicit Sizes(std::span<const int64_t> sizes) : count(static_cast<int32_t>(sizes.size())) {
        for (int32_t i = 0; i < count; ++i) of[i] = static_cast<int32_t>(sizes[static_cast<size_t>(i)]);
    }
};

struct Inputs {
    const float *points, *queries;
    int64_t point_stride, query_stride;
    DeviceBatch batch;  // of the points
    int32_t m;
    const int32_t* nearest;

    __device__ const float* point(int64_t i) const { return points + i * point_stride; }
    __device__ const float* query(int64_t i) const { return queries + i * query_stride; }
};

__device__ double squared(const float* a, const float* b) {
    const double dx = double{a[0]} - b[0], dy = double{a[1]} - b[1], dz = double{a[2]} - b[2];
    return dx * dx + dy * dy + dz * dz;
}

__device__ double warp_sum(double value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
    return value;
}

/// A thread for a point of a cloud: the nearest query so far, told at every size. Each block leaves its sums.
__global__ void __launch_bounds__(kThreads) find_owners(Inputs in, const __grid_constant__ Sizes sizes,
                                                        int32_t* __restrict__ owners, double* __restrict__ partial) {
    __shared__ float tile[3 * kTile];
    __shared__ double sums[kThreads / 32][kMostSizes];
    const int64_t cloud = blockIdx.y, first = in.batch.begin(cloud), n = in.batch.end(cloud) - first,
                  place = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    const bool is_point = place < n;
    const float* const at = in.point(first + (is_point ? place : 0));
    const float p[3] = {at[0], at[1], at[2]};
    const int warp = static_cast<int>(threadIdx.x) / 32, last = sizes.of[sizes.count - 1];
    float best = INFINITY;
    int32_t owner = -1, s = 0;
    for (int32_t begin = 0; begin < last; begin += kTile) {
        const int32_t here = min(kTile, last - begin);
        __syncthreads();
        for (int32_t i = static_cast<int32_t>(threadIdx.x); i < 3 * here; i += kThreads)
            tile[i] = in.query(cloud * in.m + begin + i / 3)[i % 3];
        __syncthreads();
        for (int32_t i = 0; i < here; ++i) {
            const float dx = __fsub_rn(p[0], tile[3 * i]), dy = __fsub_rn(p[1], tile[3 * i + 1]),
                        dz = __fsub_rn(p[2], tile[3 * i + 2]);
            const float square = __fadd_rn(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy)), __fmul_rn(dz, dz));
            if (square < best) best = square, owner = begin + i;
            if (begin + i + 1 < sizes.of[s]) continue;
            double distance = 0;
            if (is_point) {
                owners[s * in.batch.rows + first + place] = owner;
                distance = owner < 0 ? NAN : squared(p, in.query(cloud * in.m + owner));
            }
            distance = warp_sum(distance);
            if (threadIdx.x % 32 == 0) sums[warp][s] = distance;
            ++s;
        }
    }
    __syncthreads();
    const auto t = static_cast<int>(threadIdx.x);
    if (t >= sizes.count) return;
    double sum = 0;
    for (int i = 0; i < kThreads / 32; ++i) sum += sums[i][t];
    partial[(cloud * gridDim.x + blockIdx.x) * sizes.count + t] = sum;
}

/// A block for a cloud, a warp for a size: sums over its queries and over the parts of find_owners.
__global__ void sum_terms(Inputs in, const __grid_constant__ Sizes sizes, const double* __restrict__ partial,
                          int32_t parts, int32_t* __restrict__ farthest, double* __restrict__ terms) {
    const int64_t cloud = blockIdx.x, first = in.batch.begin(cloud), n = in.batch.end(cloud) - first;
    const int s = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    double sum = 0, most = -1, back = 0;
    int32_t at = 0;
    for (int32_t q = lane; q < sizes.of[s]; q += 32) {
        const int32_t nearest = in.nearest[cloud * in.m + q];
        const double distance = nearest < 0 ? NAN : squared(in.query(cloud * in.m + q), in.point(first + nearest));
        sum += distance;
        if (distance > most) most = distance, at = q;
    }
    for (int32_t i = lane; i < parts; i += 32) back += partial[(cloud * parts + i) * sizes.count + s];
    sum = warp_sum(sum);
    back = warp_sum(back);
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(kAllLanes, most, step);
        const int32_t other_at = __shfl_xor_sync(kAllLanes, at, step);
        if (other > most || (other == most && other_at < at)) most = other, at = other_at;
    }
    if (lane != 0) return;
    double* const out = terms + 3 * (cloud * sizes.count + s);
    out[0] = sum / sizes.of[s];
    out[1] = isnan(sum) ? NAN : most;
    out[2] = back / static_cast<double>(n);
    farthest[cloud * sizes.count + s] = at;
}

/// A warp for a query: the points that it owns at some size pull it, and so does its nearest point.
__global__ void __launch_bounds__(32 * kBackwardWarps)
    pull_queries(Inputs in, const __grid_constant__ Sizes sizes, int64_t clouds, const int32_t* __restrict__ owners,
                 const int32_t* __restrict__ farthest, const double* __restrict__ dL_dterms,
                 float* __restrict__ dL_dqueries) {
    const int64_t row = int64_t{blockIdx.x} * kBackwardWarps + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (row >= clouds * in.m) return;
    const int64_t cloud = row / in.m, first = in.batch.begin(cloud), n = in.batch.end(cloud) - first;
    const auto q = static_cast<int32_t>(row % in.m);
    const float* const at = in.query(row);
    double sum[3] = {0, 0, 0};
    for (int32_t s = 0; s < sizes.count; ++s) {
        if (q >= sizes.of[s]) continue;
        const double* const gradient = dL_dterms + 3 * (cloud * sizes.count + s);
        const double weight = 2 * gradient[2] / static_cast<double>(n);
        const int32_t* const owner = owners + s * in.batch.rows + first;
        for (int64_t p = lane; p < n; p += 32) {
            if (owner[p] != q) continue;
            const float* const point = in.point(first + p);
            for (int axis = 0; axis < 3; ++axis) sum[axis] += weight * (double{at[axis]} - point[axis]);
        }
        const int32_t nearest = in.nearest[row];
        if (lane == 0 && nearest >= 0) {
            const double largest = farthest[cloud * sizes.count + s] == q ? gradient[1] : 0;
            const float* const point = in.point(first + nearest);
            for (int axis = 0; axis < 3; ++axis)
                sum[axis] += 2 * (gradient[0] / sizes.of[s] + largest) * (double{at[axis]} - point[axis]);
        }
    }
    for (int axis = 0; axis < 3; ++axis) {
        const double total = warp_sum(sum[axis]);
        if (lane == 0) dL_dqueries[3 * row + axis] = static_cast<float>(total);
    }
}

Inputs inputs_of(const Clouds& points, const Clouds& queries, View<const int32_t, 1> nearest,
                 const UploadedBatch& batch) {
    return {points.rows.data(),     queries.rows.data(), points.rows.stride(0),
            queries.rows.stride(0), batch.view(),        static_cast<int32_t>(queries.batch.largest()),
            nearest.data()};
}

}  // namespace

void simplification(const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                    View<const int32_t, 1> nearest, const SimplificationRows& rows, View<double, 3> terms,
                    Stream stream_of_call) {
    const CurrentDevice current(points.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedBatch batch(points.batch, stream);
    const Inputs in = inputs_of(points, queries, nearest, batch);
    const int64_t clouds = points.batch.clouds();
    STIPPLE_REQUIRE(clouds <= 65535, "simplification: {} clouds; the most is 65535", clouds);
    const Sizes of(sizes);
    const dim3 grid(blocks_for(points.batch.largest(), kThreads), static_cast<unsigned>(clouds));
    const Scratch<double> partial(clouds * grid.x * of.count, stream);
    find_owners<<<grid, kThreads, 0, stream>>>(in, of, rows.owners.data(), partial.get());
    STIPPLE_CHECK_LAUNCH(find_owners);
    sum_terms<<<static_cast<unsigned>(clouds), 32 * of.count, 0, stream>>>(
        in, of, partial.get(), static_cast<int32_t>(grid.x), rows.farthest.data(), terms.data());
    STIPPLE_CHECK_LAUNCH(sum_terms);
}

void simplification_backward(const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                             View<const int32_t, 1> nearest, const SimplificationRows& rows,
                             View<const double, 3> dL_dterms, View<float, 2> dL_dqueries, Stream stream_of_call) {
    const CurrentDevice current(points.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedBatch batch(points.batch, stream);
    const int64_t clouds = points.batch.clouds();
    pull_queries<<<blocks_for(clouds * queries.batch.largest(), kBackwardWarps), 32 * kBackwardWarps, 0, stream>>>(
        inputs_of(points, queries, nearest, batch), Sizes(sizes), clouds, rows.owners.data(), rows.farthest.data(),
        dL_dterms.data(), dL_dqueries.data());
    STIPPLE_CHECK_LAUNCH(pull_queries);
}

}  // namespace stipple::ops::cuda
