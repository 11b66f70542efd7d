// A step of the coarse stage in one kernel: nodes carry their colour, so a warp takes a ray there and back.

#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/environment.cuh"
#include "stipple/radiance/cuda/march.cuh"

namespace stipple::radiance::cuda {
namespace {

__device__ float4 interpolate4(const Corners& corners, const float4* values) {
    float4 sum = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        const float4 v = __ldg(values + corners.node[k]);
        const float w = corners.weight[k];
        sum.x += w * v.x, sum.y += w * v.y, sum.z += w * v.z, sum.w += w * v.w;
    }
    return sum;
}

template <bool kFixed>
__global__ void __launch_bounds__(kWarp* kRayWarps) coarse_kernel(const __grid_constant__ CoarseStep step) {
    const StepConstants& c = step.constants;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int r = static_cast<int>(blockIdx.x) * kRayWarps + static_cast<int>(threadIdx.x) / kWarp;
    if (r >= c.rays) return;
    DrawnRay drawn = draw_ray(step.photos, step.pool, c.draw, step.state->step, c.rays, r);
    const GridView& view = step.bricks.view;
    const March march = march_through(drawn.ray, view.low, view.high, c.near, c.step, drawn.offset);
    const int64_t base = int64_t{r} * step.capacity;
    int samples = 0;
    float pixel[3] = {0, 0, 0};
    float4 value = {0, 0, 0, 0};
    const MarchCounts counts = march_warp(
        step.bricks, march, {c.shift, c.opacity_length, c.threshold}, lane,
        [&](const Corners& corners) {
            value = interpolate4(corners, step.value);
            return value.x;
        },
        [&](const LaneSample& s) {
            const float weight = s.kept ? s.before * s.opacity : 0;
            if (s.opaque) {
                const int64_t place = base + samples + rank_of(s.opaque_lanes, lane);
                step.index[place] = static_cast<uint16_t>(s.index);
                step.opacity[place] = s.opacity;
                step.weight[place] = weight;
            }
            if (s.kept) {
                pixel[0] += weight * sigmoid(value.y);
                pixel[1] += weight * sigmoid(value.z);
                pixel[2] += weight * sigmoid(value.w);
            }
            samples += __popc(s.opaque_lanes);
        });
    const float transmittance = counts.left;
    look_behind(step.environment.value, step.environment.side, drawn.ray.direction, drawn.background);

    const float per_ray = 1.0f / static_cast<float>(c.rays);
    float slope[3], squared_error = 0, to_end = 0;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        pixel[k] = warp_sum(pixel[k]) + transmittance * drawn.background[k];
        const float difference = pixel[k] - drawn.colour[k];
        squared_error += difference * difference;
        slope[k] = 2.0f / 3.0f * per_ray * difference;
        to_end += slope[k] * drawn.background[k];
    }
    add_behind<kFixed>(step.environment, drawn.ray.direction, slope, transmittance, drawn.background, lane);
    float entropy_slope = 0;
    end_entropy(transmittance, entropy_slope);
    to_end += c.weight_entropy * per_ray * entropy_slope;
    if (lane == 0) step.error_of[r] = squared_error;

    __syncwarp();
    float behind = to_end * transmittance;
    for (int first = (samples - 1) / kWarp * kWarp; samples > 0 && first >= 0; first -= kWarp) {
        const int i = first + lane;
        const bool is_there = i < samples;
        const float weight = is_there ? step.weight[base + i] : 0;
        const float alpha = is_there ? step.opacity[base + i] : 0;
        Corners corners;
        float by_weight = 0;
        float4 gradient = {0, 0, 0, 0};
        if (is_there) corners = corners_of(step.bricks, to_nodes(view, march.at(step.index[base + i])));
        if (weight > 0) {
            const float4 value = interpolate4(corners, step.value);
            const float rgb[3] = {sigmoid(value.y), sigmoid(value.z), sigmoid(value.w)};
            float to_colour[3];
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                by_weight += slope[k] * rgb[k];
                const float own = 2 * c.weight_rgbper * per_ray * (rgb[k] - drawn.colour[k]);
                to_colour[k] = weight * (slope[k] + own) * rgb[k] * (1 - rgb[k]);
            }
            gradient = {0, to_colour[0], to_colour[1], to_colour[2]};
        }
        const float sum = suffix_sum(by_weight * weight, lane);
        const float next_sum = __shfl_down_sync(kAll, sum, 1);
        const float after = behind + (lane == kWarp - 1 ? 0.0f : next_sum);
        behind += __shfl_sync(kAll, sum, 0);
        if (!is_there) continue;
        const float before = weight > 0 ? weight / alpha : 0;
        gradient.x = (by_weight * before - after / (1 - alpha + 1e-10f)) * slope_of_opacity(alpha, c.opacity_length);
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const float w = corners.weight[k];
            add_gradient4<kFixed>(step.gradient, int64_t{corners.node[k]} * 4,
                                  {w * gradient.x, w * gradient.y, w * gradient.z, w * gradient.w});
        }
    }
}

/// Every `stride`-th pixel: the stored nodes beside samples that it sees.
__global__ void __launch_bounds__(kWarp* kRayWarps)
    seen_kernel(const __grid_constant__ CoarseStep step, uint32_t pixels, uint32_t stride, float least, uint8_t* seen) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const uint64_t pixel = uint64_t{blockIdx.x * kRayWarps + threadIdx.x / kWarp} * stride;
    if (pixel >= pixels) return;
    const StepConstants& c = step.constants;
    const int32_t photo = photo_of(step.photos, static_cast<uint32_t>(pixel));
    const CameraView& camera = step.photos.cameras[photo];
    const int place = static_cast<int>(static_cast<uint32_t>(pixel) - step.photos.first[photo]);
    const GridView& view = step.bricks.view;
    const March march = march_through(camera_ray(camera, place % camera.width, place / camera.width), view.low,
                                      view.high, c.near, c.step);
    Corners here;
    march_warp(
        step.bricks, march, {c.shift, c.opacity_length, 0.0f}, lane,
        [&](const Corners& corners) {
            here = corners;
            return interpolate4(corners, step.value).x;
        },
        [&](const LaneSample& s) {
            if (!s.opaque || !(s.before * s.opacity > least)) return;
            for (const int32_t node : here.node) seen[node] = 1;
        });
}

/// Every node, with or without a gradient.
template <bool kFixed>
__global__ void __launch_bounds__(256) coarse_adam_kernel(const __grid_constant__ CoarseStep step) {
    const int64_t node = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (node >= step.nodes) return;
    const StepConstants& c = step.constants;
    const float rate = step.state->rate * step.state->correction;
    float4 value = step.value[node], mean = step.mean[node], square = step.square[node];
    const float g[4] = {
        take_gradient<kFixed>(step.gradient, 4 * node), take_gradient<kFixed>(step.gradient, 4 * node + 1),
        take_gradient<kFixed>(step.gradient, 4 * node + 2), take_gradient<kFixed>(step.gradient, 4 * node + 3)};
    adam(value.x, mean.x, square.x, g[0], c.rate_density * rate * step.rate[node]);
    adam(value.y, mean.y, square.y, g[1], c.rate_features * rate);
    adam(value.z, mean.z, square.z, g[2], c.rate_features * rate);
    adam(value.w, mean.w, square.w, g[3], c.rate_features * rate);
    step.value[node] = value;
    step.mean[node] = mean;
    step.square[node] = square;
}

}  // namespace

void launch_seen(const CoarseStep& step, uint32_t pixels, uint32_t stride, float least, uint8_t* seen,
                 cudaStream_t stream) {
    const uint32_t rays = (pixels + stride - 1) / stride;
    seen_kernel<<<(rays + kRayWarps - 1) / kRayWarps, kWarp * kRayWarps, 0, stream>>>(step, pixels, stride, least,
                                                                                      seen);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_coarse_step(const CoarseStep& step, bool fixed, cudaStream_t stream) {
    const int blocks = (step.constants.rays + kRayWarps - 1) / kRayWarps;
    const int node_blocks = static_cast<int>((step.nodes + 255) / 256);
    (fixed ? coarse_kernel<true> : coarse_kernel<false>)<<<blocks, kWarp * kRayWarps, 0, stream>>>(step);
    (fixed ? coarse_adam_kernel<true> : coarse_adam_kernel<false>)<<<node_blocks, 256, 0, stream>>>(step);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
    launch_optimise_environment(step.environment, step.state, step.constants.rate_environment, fixed, stream);
    launch_advance(step.state, step.error_of, step.constants.rays, step.constants.decay, stream);
}

}  // namespace stipple::radiance::cuda
