// Rays of a step: where they are opaque, how much of each sample is seen, and the features of what is seen.

#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/environment.cuh"
#include "stipple/radiance/cuda/march.cuh"

namespace stipple::radiance::cuda {
namespace {

/// A warp takes a ray.
__global__ void __launch_bounds__(kWarp* kRayWarps) march_kernel(const __grid_constant__ FineStep step) {
    const StepConstants& c = step.constants;
    const int r = static_cast<int>(blockIdx.x) * kRayWarps + static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (r >= c.rays) return;
    DrawnRay drawn = draw_ray(step.photos, step.pool, c.draw, step.state->step, c.rays, r);
    const BrickGrid& bricks = step.grids.bricks;
    const March march = march_through(drawn.ray, bricks.view.low, bricks.view.high, c.near, c.step, drawn.offset);
    const Vec3f d = drawn.ray.direction;
    if (lane < kViewCode) step.samples.view[int64_t{r} * kViewCode + lane] = view_code(d * rsqrtf(dot(d, d)), lane);

    const int64_t base = int64_t{r} * step.samples.capacity;
    int samples = 0, kept = 0;
    const MarchCounts counts = march_warp(
        bricks, march, {c.shift, c.opacity_length, c.threshold}, lane,
        [&](const Corners& corners) { return density_of(corners, step.grids.density); },
        [&](const LaneSample& s) {
            if (s.opaque) {
                const int64_t place = base + samples + rank_of(s.opaque_lanes, lane);
                step.samples.index[place] = static_cast<uint16_t>(s.index);
                step.samples.opacity[place] = s.opacity;
                step.samples.weight[place] = s.kept ? s.before * s.opacity : 0;
            }
            samples += __popc(s.opaque_lanes);
            kept += __popc(s.kept_lanes);
        });
    if (lane != 0) return;
    look_behind(step.environment.value, step.environment.side, d, drawn.background);
    RayRecord& record = step.samples.rays[r];
    record.march = march;
    record.direction = d;
    for (int k = 0; k < 3; ++k) {
        record.colour[k] = drawn.colour[k];
        record.background[k] = drawn.background[k];
    }
    record.left = counts.left;
    record.samples = samples;
    step.samples.kept_of[r] = kept;
    record.in_box = counts.in_box;
    record.in_mask = counts.in_mask;
}

/// One block: where the kept samples of each ray go. Rays for which there is no room are left out of the step.
__global__ void __launch_bounds__(1024) place_kernel(Samples samples, int32_t rays) {
    __shared__ int32_t sums[32];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
    const int each = (rays + 1023) / 1024, begin = min(thread * each, rays), end = min(begin + each, rays);
    int32_t own = 0;
    for (int r = begin; r < end; ++r) own += samples.kept_of[r];
    int32_t sum = own;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
        const int32_t before = __shfl_up_sync(kAll, sum, step);
        if (lane >= step) sum += before;
    }
    if (lane == kWarp - 1) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        int32_t total = sums[lane];
#pragma unroll
        for (int step = 1; step < kWarp; step *= 2) {
            const int32_t before = __shfl_up_sync(kAll, total, step);
            if (lane >= step) total += before;
        }
        sums[lane] = total;
    }
    __syncthreads();
    int32_t first = sum - own + (warp > 0 ? sums[warp - 1] : 0);
    for (int r = begin; r < end; ++r) {
        const int32_t next = first + samples.kept_of[r];
        samples.first_of[r] = next <= samples.kept_capacity ? first : -1;
        first = next;
    }
    if (thread == 0) *samples.kept = min(sums[31], samples.kept_capacity);
}

/// Features of the kept samples: a warp takes a ray; three lanes take a sample, four features each.
__global__ void __launch_bounds__(kWarp* kRayWarps) gather_kernel(const __grid_constant__ FineStep step) {
    __shared__ uint16_t chosen[kRayWarps][kWarp];
    __shared__ float weights[kRayWarps][kWarp];
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    const int r = static_cast<int>(blockIdx.x) * kRayWarps + warp;
    if (r >= step.constants.rays) return;
    const Samples& s = step.samples;
    const RayRecord& record = s.rays[r];
    int to = s.first_of[r];
    if (to < 0 || s.kept_of[r] == 0) return;
    const March march = record.march;
    const BrickGrid& bricks = step.grids.bricks;
    for (int first = 0; first < record.samples; first += kWarp) {
        const int64_t place = int64_t{r} * s.capacity + first + lane;
        const bool keep = first + lane < record.samples && s.weight[place] > 0;
        const unsigned those = __ballot_sync(kAll, keep);
        if (keep) {
            const int rank = rank_of(those, lane);
            chosen[warp][rank] = s.index[place];
            weights[warp][rank] = s.weight[place];
        }
        __syncwarp();
        const int count = __popc(those);
        for (int item = lane; item < 3 * count; item += kWarp) {
            const int j = item / 3, group = item % 3;
            const Corners corners = corners_of(bricks, to_nodes(bricks.view, march.at(chosen[warp][j])));
            reinterpret_cast<float4*>(s.features + int64_t{to + j} * kFeatures)[group] =
                features_of(corners, step.grids.features, group);
            if (group == 0) {
                s.ray[to + j] = r;
                s.colour[to + j].w = weights[warp][j];
            }
        }
        to += count;
        __syncwarp();
    }
}

}  // namespace

void launch_march(const FineStep& step, cudaStream_t stream) {
    const int blocks = (step.constants.rays + kRayWarps - 1) / kRayWarps;
    march_kernel<<<blocks, kWarp * kRayWarps, 0, stream>>>(step);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_place(const Samples& samples, int32_t rays, cudaStream_t stream) {
    place_kernel<<<1, 1024, 0, stream>>>(samples, rays);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_gather(const FineStep& step, cudaStream_t stream) {
    const int blocks = (step.constants.rays + kRayWarps - 1) / kRayWarps;
    gather_kernel<<<blocks, kWarp * kRayWarps, 0, stream>>>(step);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
