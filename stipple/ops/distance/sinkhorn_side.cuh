#pragma once
// A pair of clouds as the kernels of sinkhorn see it, and how it is loaded. Included by sinkhorn.cu and
// sinkhorn_backward.cu, each of which has its own copy of what is here.

#include <algorithm>
#include <cmath>

#include "stipple/ops/common/cloud_parts.cuh"
#include "stipple/ops/sinkhorn.h"

namespace stipple::ops::cuda {
namespace {

constexpr double kLog2E = 1.44269504088896340736;
constexpr float kNoMass = -1e30f;  // log2 of a weight of 0: 2^kNoMass is 0 and nothing overflows on the way
constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kFlush = 32;  // columns a lane adds in float before it adds the sum to a double

/// One cloud of the pair on the device. A point is (x, y, z, exponent): relative to an origin that both clouds share,
/// with exponent = log2(weight) + potential * log2(e) / epsilon.
struct Side {
    DeviceBatch batch;
    float4* points;
    float* log_mass;
};

/// What is known of a pair of clouds.
struct Progress {
    int done;  // 1: stopped by the tolerance; 2: no mass
    int iterations;
    double error;
};

struct Double {
    double value;
    static __device__ Double shuffle_down(const Double& d, int step) { return {__shfl_down_sync(~0u, d.value, step)}; }
};
struct AddDoubles {
    __device__ Double operator()(const Double& a, const Double& b) const { return {a.value + b.value}; }
};

/// Sum over a block in a fixed order; every thread receives it.
__device__ double block_sum(double mine, Double* shared) {
    const Double all = reduce_block(Double{mine}, shared, AddDoubles{});
    __syncthreads();
    if (threadIdx.x == 0) shared[0] = all;
    __syncthreads();
    return shared[0].value;
}

// -----------------------------------------------------------------------------------------------------------
// preparation

struct Input {
    const float* rows;
    int64_t stride;
    const float* weights;     // null: equal
    const float* potentials;  // null: 0
};

__device__ bool has_mass(const Input& input, int64_t row) {
    const float* p = input.rows + row * input.stride;
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]) &&
           (!input.weights || (input.weights[row] > 0 && isfinite(input.weights[row])));
}

/// One block for a pair of clouds: the origin (the first point of a with mass), the weights, the points.
__global__ void __launch_bounds__(kPartThreads)
    sinkhorn_prepare_kernel(const __grid_constant__ Side a, const __grid_constant__ Input input_a,
                            const __grid_constant__ Side b, const __grid_constant__ Input input_b,
                            float inverse_epsilon, Progress* __restrict__ progress) {
    __shared__ Double shared[32];
    __shared__ unsigned long long first;
    const int64_t cloud = blockIdx.x;
    if (threadIdx.x == 0) first = ~0ull;
    __syncthreads();
    bool any = true;
    for (int which = 0; which < 2; ++which) {
        const Side& side = which == 0 ? a : b;
        const Input& input = which == 0 ? input_a : input_b;
        const int64_t begin = side.batch.begin(cloud), end = side.batch.end(cloud);
        double mine = 0;
        int64_t my_first = -1;
        for (int64_t row = begin + threadIdx.x; row < end; row += kPartThreads) {
            if (!has_mass(input, row)) continue;
            mine += input.weights ? input.weights[row] : 1.0f;
            if (my_first < 0) my_first = row;
        }
        if (which == 0 && my_first >= 0) atomicMin(&first, static_cast<unsigned long long>(my_first));
        const double total = block_sum(mine, shared);  // synchronises: `first` is complete
        any = any && total > 0;
        float origin[3] = {0, 0, 0};
        if (first != ~0ull) {
            for (int axis = 0; axis < 3; ++axis)
                origin[axis] = input_a.rows[static_cast<int64_t>(first) * input_a.stride + axis];
        }
        for (int64_t row = begin + threadIdx.x; row < end; row += kPartThreads) {
            float4 point = {0, 0, 0, kNoMass};
            float log_mass = kNoMass;
            if (has_mass(input, row)) {
                const float* p = input.rows + row * input.stride;
                log_mass = static_cast<float>(log2((input.weights ? input.weights[row] : 1.0f) / total));
                point = {p[0] - origin[0], p[1] - origin[1], p[2] - origin[2],
                         log_mass + (input.potentials ? input.potentials[row] * inverse_epsilon : 0.0f)};
            }
            side.points[row] = point;
            side.log_mass[row] = log_mass;
        }
    }
    if (threadIdx.x == 0) progress[cloud] = {any ? 0 : 2, 0, 0.0};
}

// -----------------------------------------------------------------------------------------------------------------
// rows

// Within 2^-22 of the result. The exponential takes subnormals for 0; the root does not: the squares of distances of
// 1e-20 are subnormal.
__device__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ float sqrt_approx(float x) {
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <DistanceNorm norm>
__device__ float cost_of(float dx, float dy, float dz) {
    const float sq = fmaf(dz, dz, fmaf(dy, dy, dx * dx));
    return norm == DistanceNorm::squared ? sq : sqrt_approx(sq);
}

__device__ double warp_sum(double value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;  // the same bits in every lane
}

__device__ float warp_largest(float value) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
    return value;
}

/// The rows of a warp: kRows of one cloud, or none where the cloud has stopped or ended.
template <int kRows>
struct WarpRows {
    int64_t cloud, first;
    int count;

    __device__ WarpRows(const DeviceBatch& batch, int64_t blocks_per_cloud, const Progress* progress) {
        cloud = blockIdx.x / blocks_per_cloud;
        const int64_t block = blockIdx.x % blocks_per_cloud;
        first = batch.begin(cloud) + (block * kWarps + threadIdx.x / 32) * kRows;
        const int64_t left = batch.end(cloud) - first;
        const bool stopped = progress && progress[cloud].done != 0;
        count = stopped || left <= 0 ? 0 : static_cast<int>(left < kRows ? left : kRows);
    }
};

/// Owns a side's memory for the call.
struct SideMemory {
    UploadedBatch batch;
    Scratch<float4> points;
    Scratch<float> log_mass;

    SideMemory(const Batch& of, cudaStream_t stream)
        : batch(of, stream), points(of.rows(), stream), log_mass(of.rows(), stream) {}
    Side view() const { return {batch.view(), points.get(), log_mass.get()}; }
};

Input input_of(const Clouds& clouds, View<const float, 1> weights, const float* potentials) {
    return {clouds.rows.data(), clouds.rows.stride(0), weights.size(0) > 0 ? weights.data() : nullptr, potentials};
}

int64_t blocks_per_cloud(const Batch& batch, int rows_per_warp) {
    const int64_t per_block = int64_t{kWarps} * rows_per_warp;
    return (batch.largest() + per_block - 1) / per_block;
}

/// Fills both sides and the progress of every pair.
void prepare(int64_t clouds, const SideMemory& side_a, const SideMemory& side_b, const Input& input_a,
             const Input& input_b, float scale, Progress* progress, cudaStream_t stream) {
    sinkhorn_prepare_kernel<<<blocks_for(clouds, 1), kPartThreads, 0, stream>>>(side_a.view(), input_a, side_b.view(),
                                                                                input_b, scale, progress);
    STIPPLE_CHECK_LAUNCH(sinkhorn_prepare_kernel);
}

}  // namespace
}  // namespace stipple::ops::cuda
