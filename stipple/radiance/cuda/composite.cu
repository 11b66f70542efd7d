// From the colours of samples to pixels and losses, and back to the gradients of colours and densities.

#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/environment.cuh"
#include "stipple/radiance/cuda/march.cuh"

namespace stipple::radiance::cuda {
namespace {

/// A warp takes a ray: its pixel from front to back, then gradients from back to front.
template <bool kFixed>
__global__ void __launch_bounds__(kWarp* kRayWarps) composite_kernel(const __grid_constant__ FineStep step) {
    const StepConstants& c = step.constants;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int r = static_cast<int>(blockIdx.x) * kRayWarps + static_cast<int>(threadIdx.x) / kWarp;
    if (r >= c.rays) return;
    const Samples& s = step.samples;
    const RayRecord& record = s.rays[r];
    const int list = s.first_of[r], kept_samples = s.kept_of[r];
    const bool left_out = list < 0;
    const int64_t base = int64_t{r} * s.capacity;
    const int samples = left_out ? 0 : record.samples;

    float pixel[3] = {0, 0, 0};
    for (int j = lane; !left_out && j < kept_samples; j += kWarp) {
        // The weight of the j-th kept sample travels in the fourth number.
        const float4 colour = s.colour[list + j];
        pixel[0] += colour.w * colour.x, pixel[1] += colour.w * colour.y, pixel[2] += colour.w * colour.z;
    }
    const float per_ray = 1.0f / static_cast<float>(c.rays);
    float slope[3], squared_error = 0, to_end = 0;
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        pixel[k] = warp_sum(pixel[k]) + record.left * record.background[k];
        const float difference = left_out ? 0 : pixel[k] - record.colour[k];
        squared_error += difference * difference;
        slope[k] = 2.0f / 3.0f * per_ray * difference;
        to_end += slope[k] * record.background[k];
    }
    add_behind<kFixed>(step.environment, record.direction, slope, record.left, record.background, lane);
    float entropy_slope = 0;
    end_entropy(record.left, entropy_slope);
    to_end += c.weight_entropy * per_ray * entropy_slope;
    if (lane == 0) s.error_of[r] = squared_error;

    // What later samples give for each unit by which an earlier one lets less through.
    float behind = to_end * record.left;
    int kept_end = kept_samples;
    for (int first = (samples - 1) / kWarp * kWarp; samples > 0 && first >= 0; first -= kWarp) {
        const int i = first + lane;
        const bool is_there = i < samples;
        const float weight = is_there ? s.weight[base + i] : 0;
        const float alpha = is_there ? s.opacity[base + i] : 0;
        const unsigned kept = __ballot_sync(kAll, weight > 0);
        kept_end -= __popc(kept);
        float by_weight = 0;
        if (weight > 0) {
            float4& colour = s.colour[list + kept_end + rank_of(kept, lane)];
            const float rgb[3] = {colour.x, colour.y, colour.z};
            float gradient[3];
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                by_weight += slope[k] * rgb[k];
                const float own = 2 * c.weight_rgbper * per_ray * (rgb[k] - record.colour[k]);
                gradient[k] = step.gradient_scale * weight * (slope[k] + own) * rgb[k] * (1 - rgb[k]);
            }
            colour = {gradient[0], gradient[1], gradient[2], 0};
        }
        const float sum = suffix_sum(by_weight * weight, lane);
        const float next_sum = __shfl_down_sync(kAll, sum, 1);
        const float after = behind + (lane == kWarp - 1 ? 0.0f : next_sum);
        behind += __shfl_sync(kAll, sum, 0);
        if (!is_there) continue;
        const float before = weight > 0 ? weight / alpha : 0;
        const float to_alpha = by_weight * before - after / (1 - alpha + 1e-10f);
        const float to_density = to_alpha * slope_of_opacity(alpha, c.opacity_length);
        if (to_density == 0) continue;
        const BrickGrid& bricks = step.grids.bricks;
        const Corners corners = corners_of(bricks, to_nodes(bricks.view, record.march.at(s.index[base + i])));
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            add_gradient<kFixed>(step.grids.density_gradient, corners.node[k], corners.weight[k] * to_density);
            step.grids.touched[corners.node[k] / kBrickNodes] = 1;
        }
    }
}

/// Gradients of features to the nodes about each kept sample; as gather_kernel.
template <bool kFixed>
__global__ void __launch_bounds__(kWarp* kRayWarps) scatter_kernel(const __grid_constant__ FineStep step) {
    __shared__ uint16_t chosen[kRayWarps][kWarp];
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    const int r = static_cast<int>(blockIdx.x) * kRayWarps + warp;
    if (r >= step.constants.rays) return;
    const Samples& s = step.samples;
    const RayRecord& record = s.rays[r];
    int from = s.first_of[r];
    if (from < 0 || s.kept_of[r] == 0) return;
    const March march = record.march;
    const BrickGrid& bricks = step.grids.bricks;
    for (int first = 0; first < record.samples; first += kWarp) {
        const int64_t place = int64_t{r} * s.capacity + first + lane;
        const bool keep = first + lane < record.samples && s.weight[place] > 0;
        const unsigned those = __ballot_sync(kAll, keep);
        if (keep) chosen[warp][rank_of(those, lane)] = s.index[place];
        __syncwarp();
        const int count = __popc(those);
        for (int item = lane; item < 3 * count; item += kWarp) {
            const int j = item / 3, group = item % 3;
            const Corners corners = corners_of(bricks, to_nodes(bricks.view, march.at(chosen[warp][j])));
            const float4 g = reinterpret_cast<const float4*>(s.features + int64_t{from + j} * kFeatures)[group];
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                const float w = corners.weight[k];
                add_gradient4<kFixed>(step.grids.features_gradient, int64_t{corners.node[k]} * kFeatures + 4 * group,
                                      {w * g.x, w * g.y, w * g.z, w * g.w});
                if (group == 0) step.grids.touched[corners.node[k] / kBrickNodes] = 1;
            }
        }
        from += count;
        __syncwarp();
    }
}

/// One block: the step is done.
__global__ void __launch_bounds__(1024)
    advance_kernel(StepState* state, const float* error_of, int32_t count, double decay) {
    __shared__ double sums[32];
    double sum = 0;
    for (int r = static_cast<int>(threadIdx.x); r < count; r += 1024) sum += error_of[r];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAll, sum, step);
    if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < 32; ++i) sum += sums[i];
    state->squared_error += sum;
    state->rays += count;
    advance(*state, decay);
}

}  // namespace

void launch_composite(const FineStep& step, bool fixed, cudaStream_t stream) {
    const int blocks = (step.constants.rays + kRayWarps - 1) / kRayWarps;
    (fixed ? composite_kernel<true> : composite_kernel<false>)<<<blocks, kWarp * kRayWarps, 0, stream>>>(step);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_scatter(const FineStep& step, bool fixed, cudaStream_t stream) {
    const int blocks = (step.constants.rays + kRayWarps - 1) / kRayWarps;
    (fixed ? scatter_kernel<true> : scatter_kernel<false>)<<<blocks, kWarp * kRayWarps, 0, stream>>>(step);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_advance(StepState* state, const float* error_of, int32_t count, double decay, cudaStream_t stream) {
    advance_kernel<<<1, 1024, 0, stream>>>(state, error_of, count, decay);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
