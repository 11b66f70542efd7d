// Rays of a step: where they are opaque, how much of each sample is seen, and the features of what is seen.

#include <cuda_fp16.h>

#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/step.cuh"
#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance::cuda {
namespace {

__device__ float view_code(Vec3f unit, int i) {
    if (i < 3) return unit[i];
    if (i >= kViewInputs) return 1;
    const int j = (i - 3) % (3 * kFrequencies);
    const float angle = unit[j / kFrequencies] * static_cast<float>(1 << (j % kFrequencies));
    return i - 3 < 3 * kFrequencies ? sinf(angle) : cosf(angle);
}

/// A warp takes a ray, 32 samples at a time.
__global__ void __launch_bounds__(kWarp* kRayWarps) march_kernel(const __grid_constant__ FineStep step) {
    const StepConstants& c = step.constants;
    const int r = static_cast<int>(blockIdx.x) * kRayWarps + static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (r >= c.rays) return;
    const DrawnRay drawn = draw_ray(step.photos, step.pool, c.draw, step.state->step, c.rays, r);
    const GridView& view = step.grids.bricks.view;
    const March march = march_through(drawn.ray, view.low, view.high, c.near, c.step, drawn.offset);
    const Vec3f d = drawn.ray.direction;
    const float norm = rsqrtf(dot(d, d));
    if (lane < kViewCode) step.samples.view[int64_t{r} * kViewCode + lane] = view_code(d * norm, lane);

    const int64_t base = int64_t{r} * step.samples.capacity;
    int samples = 0, kept = 0, in_box = 0, in_mask = 0;
    float transmittance = 1;
    for (int first = 0; first < march.samples; first += kWarp) {
        const int i = first + lane;
        const Vec3f p = march.at(i);
        const bool inside = i < march.samples && is_inside(view, p);
        const Vec3f node = to_nodes(view, p);
        const bool occupied = inside && is_occupied(step.grids.bricks, node);
        in_box += __popc(__ballot_sync(kAll, inside));
        const unsigned any = __ballot_sync(kAll, occupied);
        if (any == 0) continue;
        in_mask += __popc(any);
        float alpha = 0;
        if (occupied) {
            const Corners corners = corners_of(step.grids.bricks, node);
            float raw = 0;
#pragma unroll
            for (int k = 0; k < 8; ++k) raw += corners.weight[k] * __ldg(step.grids.density + corners.node[k]);
            alpha = opacity(raw + c.shift, c.opacity_length);
        }
        bool opaque = alpha > c.threshold;
        const float product = inclusive_product(opaque ? 1 - alpha : 1.0f, lane);
        const float after = transmittance * product;
        const float before_product = __shfl_up_sync(kAll, product, 1);
        const float before = transmittance * (lane == 0 ? 1.0f : before_product);
        const unsigned stops = __ballot_sync(kAll, opaque && after < kLeastTransmittance);
        const int last = stops ? __ffs(static_cast<int>(stops)) - 1 : kWarp - 1;
        opaque = opaque && lane <= last;
        const float weight = before * alpha;
        const bool keep = opaque && weight > c.threshold;
        const unsigned those = __ballot_sync(kAll, opaque);
        if (opaque) {
            const int64_t place = base + samples + __popc(those & ((1u << lane) - 1));
            step.samples.index[place] = static_cast<uint16_t>(i);
            step.samples.opacity[place] = alpha;
            step.samples.weight[place] = keep ? weight : 0;
        }
        samples += __popc(those);
        kept += __popc(__ballot_sync(kAll, keep));
        transmittance = __shfl_sync(kAll, after, last);
        if (stops) break;
    }
    if (lane != 0) return;
    RayRecord& record = step.samples.rays[r];
    record.march = march;
    for (int k = 0; k < 3; ++k) {
        record.colour[k] = drawn.colour[k];
        record.background[k] = drawn.background[k];
    }
    record.left = transmittance;
    record.samples = samples;
    record.kept = kept;
    record.in_box = in_box;
    record.in_mask = in_mask;
}

/// One block: where the kept samples of each ray go. Rays for which there is no room are left out of the step.
__global__ void __launch_bounds__(1024) place_kernel(Samples samples, int32_t rays) {
    __shared__ int32_t sums[32];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
    int32_t carried = 0;
    for (int begin = 0; begin < rays; begin += 1024) {
        const int r = begin + thread;
        const int32_t kept = r < rays ? samples.rays[r].kept : 0;
        int32_t sum = kept;
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
        const int32_t end = carried + sum + (warp > 0 ? sums[warp - 1] : 0);
        if (r < rays) samples.rays[r].first = end <= samples.kept_capacity ? end - kept : -1;
        carried += sums[31];
        __syncthreads();
    }
    if (thread == 0) *samples.kept = min(carried, samples.kept_capacity);
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
    if (record.first < 0 || record.kept == 0) return;
    const March march = record.march;
    const BrickGrid& bricks = step.grids.bricks;
    int to = record.first;
    for (int first = 0; first < record.samples; first += kWarp) {
        const int64_t place = int64_t{r} * s.capacity + first + lane;
        const bool keep = first + lane < record.samples && s.weight[place] > 0;
        const unsigned those = __ballot_sync(kAll, keep);
        if (keep) {
            const int rank = __popc(those & ((1u << lane) - 1));
            chosen[warp][rank] = s.index[place];
            weights[warp][rank] = s.weight[place];
        }
        __syncwarp();
        const int count = __popc(those);
        for (int item = lane; item < 3 * count; item += kWarp) {
            const int j = item / 3, group = item % 3;
            const Corners corners = corners_of(bricks, to_nodes(bricks.view, march.at(chosen[warp][j])));
            float4 sum = {0, 0, 0, 0};
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                const float4 f = __ldg(reinterpret_cast<const float4*>(step.grids.features +
                                                                       int64_t{corners.node[k]} * kFeatures) +
                                       group);
                const float w = corners.weight[k];
                sum.x += w * f.x, sum.y += w * f.y, sum.z += w * f.z, sum.w += w * f.w;
            }
            reinterpret_cast<float4*>(s.features + int64_t{to + j} * kFeatures)[group] = sum;
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
    place_kernel<<<1, 1024, 0, stream>>>(step.samples, step.constants.rays);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_gather(const FineStep& step, cudaStream_t stream) {
    const int blocks = (step.constants.rays + kRayWarps - 1) / kRayWarps;
    gather_kernel<<<blocks, kWarp * kRayWarps, 0, stream>>>(step);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
