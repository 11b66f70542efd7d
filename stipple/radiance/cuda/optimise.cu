// Adam over the bricks that a step touched, and over the colour network.

#include <cuda_fp16.h>

#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/colour.cuh"
#include "stipple/radiance/cuda/step.cuh"

namespace stipple::radiance::cuda {
namespace {

/// Total variation of the elements that have a gradient: differences to the six neighbours, at most 1 each.
template <bool kFixed>
__global__ void __launch_bounds__(kBrickNodes)
    variation_kernel(const __grid_constant__ Grids grids, const int32_t* brick_place, float density_weight,
                     float features_weight) {
    const int brick = static_cast<int>(blockIdx.x), place = static_cast<int>(threadIdx.x);
    if (!grids.touched[brick]) return;
    const BrickGrid& b = grids.bricks;
    const int32_t at = brick_place[brick];
    const int x = at / (b.bricks[1] * b.bricks[2]) * kBrick + place / (kBrick * kBrick);
    const int y = at / b.bricks[2] % b.bricks[1] * kBrick + place / kBrick % kBrick;
    const int z = at % b.bricks[2] * kBrick + place % kBrick;
    const int64_t node = int64_t{brick} * kBrickNodes + place;
    const auto neighbour = [&](int dx, int dy, int dz) -> int64_t {
        const int nx = x + dx, ny = y + dy, nz = z + dz;
        if (nx < 0 || ny < 0 || nz < 0 || nx >= b.view.size[0] || ny >= b.view.size[1] || nz >= b.view.size[2])
            return -1;
        const int32_t other = b.brick_of(nx, ny, nz);
        return other < 0 ? -1 : int64_t{other} * kBrickNodes + BrickGrid::place(nx, ny, nz);
    };
    const int64_t beside[6] = {neighbour(-1, 0, 0), neighbour(1, 0, 0),  neighbour(0, -1, 0),
                               neighbour(0, 1, 0),  neighbour(0, 0, -1), neighbour(0, 0, 1)};
    const auto add = [&](const float* value, void* gradient, int channels, int channel, float weight) {
        const int64_t i = node * channels + channel;
        const bool has = kFixed ? static_cast<long long*>(gradient)[i] != 0 : static_cast<float*>(gradient)[i] != 0;
        if (!has) return;
        float sum = 0;
        for (const int64_t other : beside) {
            if (other >= 0) sum += fminf(1, fmaxf(-1, value[i] - value[other * channels + channel]));
        }
        add_gradient<kFixed>(gradient, i, weight / 6 * sum);
    };
    if (density_weight > 0) add(grids.density, grids.density_gradient, 1, 0, density_weight);
    if (features_weight > 0) {
        for (int k = 0; k < kFeatures; ++k) {
            add(grids.features, grids.features_gradient, kFeatures, k, features_weight);
        }
    }
}

/// A warp takes a brick. Elements without a gradient stay as they are, bit for bit.
template <bool kFixed>
__global__ void __launch_bounds__(256)
    grids_kernel(const __grid_constant__ Grids grids, const StepState* state, float density_rate, float features_rate) {
    const int brick = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (brick >= grids.stored || !grids.touched[brick]) return;
    const float rate = state->rate * state->correction;
    const int64_t first = int64_t{brick} * kBrickNodes;
    for (int64_t i = first + lane; i < first + kBrickNodes; i += kWarp) {
        const float g = take_gradient<kFixed>(grids.density_gradient, i);
        if (g == 0) continue;
        adam(grids.density[i], grids.density_mean[i], grids.density_square[i], g, density_rate * rate);
    }
    if constexpr (kFixed) {
        for (int64_t i = first * kFeatures + lane; i < (first + kBrickNodes) * kFeatures; i += kWarp) {
            const float g = take_gradient<kFixed>(grids.features_gradient, i);
            if (g == 0) continue;
            adam(grids.features[i], grids.features_mean[i], grids.features_square[i], g, features_rate * rate);
        }
    } else {
        const int64_t begin = first * kFeatures / 4, end = (first + kBrickNodes) * kFeatures / 4;
        for (int64_t i = begin + lane; i < end; i += kWarp) {
            float4* gradient = static_cast<float4*>(grids.features_gradient) + i;
            const float4 g = *gradient;
            if (g.x == 0 && g.y == 0 && g.z == 0 && g.w == 0) continue;
            *gradient = {0, 0, 0, 0};
            float4 value = reinterpret_cast<float4*>(grids.features)[i];
            float4 mean = reinterpret_cast<float4*>(grids.features_mean)[i];
            float4 square = reinterpret_cast<float4*>(grids.features_square)[i];
            if (g.x != 0) adam(value.x, mean.x, square.x, g.x, features_rate * rate);
            if (g.y != 0) adam(value.y, mean.y, square.y, g.y, features_rate * rate);
            if (g.z != 0) adam(value.z, mean.z, square.z, g.z, features_rate * rate);
            if (g.w != 0) adam(value.w, mean.w, square.w, g.w, features_rate * rate);
            reinterpret_cast<float4*>(grids.features)[i] = value;
            reinterpret_cast<float4*>(grids.features_mean)[i] = mean;
            reinterpret_cast<float4*>(grids.features_square)[i] = square;
        }
    }
    __syncwarp();
    if (lane == 0) grids.touched[brick] = 0;
}

__device__ void store_half(const NetworkMemory& network, int i) {
    const float value = network.value[i];
    if (i < kWeight2) {
        const int column = i % kNetworkInputs;
        __half* row = network.half + kHalfWeight1 + i / kNetworkInputs * kPaddedInputs;
        row[column] = __float2half(value);
        if (column < kFeatures) row[kRest + column] = __float2half(value);
    } else if (i < kBias2) {
        network.half[kHalfWeight2 + i - kWeight2] = __float2half(value);
    } else if (i >= kWeight3 && i < kBias3) {
        network.half[kHalfWeight3 + i - kWeight3] = __float2half(value);
    }
}

/// A block takes 32 numbers; eight of its warps each sum a part of the blocks' gradients.
__global__ void __launch_bounds__(256) network_kernel(const __grid_constant__ NetworkMemory network,
                                                      const StepState* state, float network_rate, float gradient_unit) {
    __shared__ float parts[8][kWarp];
    const int lane = static_cast<int>(threadIdx.x) % kWarp, part = static_cast<int>(threadIdx.x) / kWarp;
    const int i = static_cast<int>(blockIdx.x) * kWarp + lane;
    float sum = 0;
    if (i < kNetworkNumbers) {
#pragma unroll 4
        for (int block = part; block < network.blocks; block += 8) {
            sum += network.partial[int64_t{block} * kNetworkNumbers + i];
        }
    }
    parts[part][lane] = sum;
    __syncthreads();
    if (part != 0 || i >= kNetworkNumbers) return;
    for (int other = 1; other < 8; ++other) sum += parts[other][lane];
    adam(network.value[i], network.mean[i], network.square[i], sum * gradient_unit,
         network_rate * state->rate * state->correction);
    store_half(network, i);
}

__global__ void halves_kernel(const __grid_constant__ NetworkMemory network) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < kNetworkNumbers) store_half(network, i);
}

}  // namespace

void launch_optimise_grids(const FineStep& step, bool fixed, cudaStream_t stream) {
    const StepConstants& c = step.constants;
    if (c.weight_tv_density > 0 || c.weight_tv_features > 0) {
        (fixed ? variation_kernel<true> : variation_kernel<false>)<<<step.grids.stored, kBrickNodes, 0, stream>>>(
            step.grids, step.brick_place, c.weight_tv_density, c.weight_tv_features);
    }
    (fixed ? grids_kernel<true> : grids_kernel<false>)<<<(step.grids.stored + 7) / 8, 256, 0, stream>>>(
        step.grids, step.state, c.rate_density, c.rate_features);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_optimise_network(const FineStep& step, cudaStream_t stream) {
    network_kernel<<<(kNetworkNumbers + kWarp - 1) / kWarp, 256, 0, stream>>>(
        step.network, step.state, step.constants.rate_network, 1 / step.gradient_scale);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_network_halves(const NetworkMemory& network, cudaStream_t stream) {
    halves_kernel<<<(kNetworkNumbers + 127) / 128, 128, 0, stream>>>(network);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
