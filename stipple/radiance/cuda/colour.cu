// The colour network on tensor cores, in half precision with sums in single precision.
//
// A block keeps the weights in shared memory and takes tiles of kColourTile samples, 16 rows a warp. Training computes
// the hidden layers a second time for the gradients instead of storing them: 512 bytes a sample would cost more.

#include <cuda_fp16.h>

#include "stipple/core/cuda/check.h"
#include "stipple/ops/products/tensor_products.cuh"
#include "stipple/radiance/cuda/colour.cuh"
#include "stipple/radiance/cuda/step.cuh"
#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance::cuda {
namespace {

constexpr int kColourTile = 128, kThreads = 256;
constexpr int kHiddenTiles = kHidden / 8;
// Rows of shared matrices, in numbers: such that the same column of eight rows lies in different banks.
constexpr int kColourInputRow = kPaddedInputs + 8, kHiddenRow = kHidden + 8, kOutputRow = kPaddedOutputs + 8;

struct Weights {
    __half weight1[kHidden * kColourInputRow];
    __half weight2[kHidden * kHiddenRow];
    __half weight3[kPaddedOutputs * kHiddenRow];
    float bias2[kHidden], bias3[4];
};

struct ForwardMemory {
    Weights weights;
    __half inputs[kColourTile * kColourInputRow];
    __half hidden[kColourTile * kHiddenRow];
};

struct BackwardMemory {
    Weights weights;
    __half inputs[kColourTile * kColourInputRow];
    __half hidden1[kColourTile * kHiddenRow];
    __half hidden2[kColourTile * kHiddenRow];  // then the gradient of hidden1
    __half gradient2[kColourTile * kHiddenRow];
    __half outputs[kColourTile * kOutputRow];  // gradients
};

#if __CUDA_ARCH__ >= 800

using ops::cuda::add_product;
using ops::cuda::address_in_shared;
using ops::cuda::load_matrices;
using ops::cuda::load_transposes;

__device__ void load_weights(Weights& to, const NetworkMemory& network) {
    const int thread = static_cast<int>(threadIdx.x);
    const auto copy = [&](__half* rows, int row_length, int from, int count, int length) {
        for (int i = thread * 8; i < count * length; i += kThreads * 8) {
            *reinterpret_cast<uint4*>(rows + i / length * row_length + i % length) =
                *reinterpret_cast<const uint4*>(network.half + from + i);
        }
    };
    copy(to.weight1, kColourInputRow, kHalfWeight1, kHidden, kPaddedInputs);
    copy(to.weight2, kHiddenRow, kHalfWeight2, kHidden, kHidden);
    copy(to.weight3, kHiddenRow, kHalfWeight3, kPaddedOutputs, kHidden);
    for (int i = thread; i < kHidden; i += kThreads) to.bias2[i] = network.value[kBias2 + i];
    if (thread < 3) to.bias3[thread] = network.value[kBias3 + thread];
}

/// Gradients that half precision cannot hold become its largest number, not infinity.
__device__ float to_range(float x) {
    return fminf(fmaxf(x, -65504.0f), 65504.0f);
}

__device__ void store_halves(__half* to, float4 x) {
    reinterpret_cast<__half2*>(to)[0] = __floats2half2_rn(x.x, x.y);
    reinterpret_cast<__half2*>(to)[1] = __floats2half2_rn(x.z, x.w);
}

/// Features and view code of a tile's samples; zeros where there are none. The last columns stay as they are.
__device__ void load_inputs(__half* inputs, const Samples& s, int first, int count) {
    static_assert(kFeatures == 12 && kViewCode == 28);
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < kColourTile * 10; i += kThreads) {
        const int row = i / 10, group = i % 10;
        float4 x = {0, 0, 0, 0};
        if (first + row < count) {
            x = group < 3 ? reinterpret_cast<const float4*>(s.features + int64_t{first + row} * kFeatures)[group]
                          : __ldg(reinterpret_cast<const float4*>(s.view + int64_t{s.ray[first + row]} * kViewCode) +
                                  group - 3);
        }
        store_halves(inputs + row * kColourInputRow + 4 * group, x);
    }
}

__device__ void clear_padding(__half* inputs) {
    for (int row = static_cast<int>(threadIdx.x); row < kColourTile; row += kThreads) {
        store_halves(inputs + row * kColourInputRow + 40, {0, 0, 0, 0});
        store_halves(inputs + row * kColourInputRow + 44, {0, 0, 0, 0});
    }
}

/// sums [16, 8 kTiles] += rows [16, 16 kSteps] of `a` times the transpose of the rows [8 kTiles, 16 kSteps] of `b`.
template <int kSteps, int kTiles, int kRowA, int kRowB>
__device__ void multiply_rows(float (&sums)[kTiles][4], const __half* a, const __half* b) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const uint32_t at_a = address_in_shared(a + (lane & 15) * kRowA + (lane >> 4) * 8);
    const uint32_t at_b = address_in_shared(b + ((lane & 7) + (lane >> 4) * 8) * kRowB + (lane >> 3 & 1) * 8);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
        uint32_t x[4];
        load_matrices(x, at_a + k * 32);
#pragma unroll
        for (int n = 0; n < kTiles; n += 2) {
            uint32_t y[4];
            load_matrices(y, at_b + n * 8 * kRowB * 2 + k * 32);
            add_product<DType::f16>(sums[n], x, y[0], y[1]);
            if (n + 1 < kTiles) add_product<DType::f16>(sums[n + 1], x, y[2], y[3]);
        }
    }
}

/// sums [16, 8 kTiles] += rows [16, 16 kSteps] of `a` times rows [16 kSteps, 8 kTiles] of `b`.
template <int kSteps, int kTiles, int kRowA, int kRowB>
__device__ void multiply(float (&sums)[kTiles][4], const __half* a, const __half* b) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const uint32_t at_a = address_in_shared(a + (lane & 15) * kRowA + (lane >> 4) * 8);
    const uint32_t at_b = address_in_shared(b + ((lane & 7) + (lane >> 3 & 1) * 8) * kRowB + (lane >> 4) * 8);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
        uint32_t x[4];
        load_matrices(x, at_a + k * 32);
#pragma unroll
        for (int n = 0; n < kTiles; n += 2) {
            uint32_t y[4];
            load_transposes(y, at_b + k * 16 * kRowB * 2 + n * 16);
            add_product<DType::f16>(sums[n], x, y[0], y[1]);
            add_product<DType::f16>(sums[n + 1], x, y[2], y[3]);
        }
    }
}

/// sums [16, 8 kTiles] += columns of `a` [kColourTile, 16], transposed, times columns of `b` [kColourTile, 8 kTiles].
template <int kTiles, int kRowA, int kRowB>
__device__ void multiply_over_samples(float (&sums)[kTiles][4], const __half* a, const __half* b) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const uint32_t at_a = address_in_shared(a + ((lane & 7) + (lane >> 4) * 8) * kRowA + (lane >> 3 & 1) * 8);
    const uint32_t at_b = address_in_shared(b + ((lane & 7) + (lane >> 3 & 1) * 8) * kRowB + (lane >> 4) * 8);
#pragma unroll 2
    for (int k = 0; k < kColourTile / 16; ++k) {
        uint32_t x[4];
        load_transposes(x, at_a + k * 16 * kRowA * 2);
#pragma unroll
        for (int n = 0; n < kTiles; n += 2) {
            uint32_t y[4];
            load_transposes(y, at_b + k * 16 * kRowB * 2 + n * 16);
            add_product<DType::f16>(sums[n], x, y[0], y[1]);
            add_product<DType::f16>(sums[n + 1], x, y[2], y[3]);
        }
    }
}

template <int kTiles>
__device__ void clear(float (&sums)[kTiles][4]) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int k = 0; k < 4; ++k) sums[n][k] = 0;
    }
}

/// Rectified, with a bias where there is one.
__device__ void store_hidden(__half* rows, const float (&sums)[kHiddenTiles][4], const float* bias) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < kHiddenTiles; ++n) {
        const int column = 8 * n + 2 * t;
        const float b0 = bias ? bias[column] : 0, b1 = bias ? bias[column + 1] : 0;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            *reinterpret_cast<__half2*>(rows + (g + 8 * h) * kHiddenRow + column) =
                __floats2half2_rn(fmaxf(sums[n][2 * h] + b0, 0), fmaxf(sums[n][2 * h + 1] + b1, 0));
        }
    }
}

/// Where the hidden unit was on.
__device__ void store_gradient(__half* rows, const float (&sums)[kHiddenTiles][4], const __half* hidden) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < kHiddenTiles; ++n) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int at = (g + 8 * h) * kHiddenRow + 8 * n + 2 * t;
            const __half2 on = *reinterpret_cast<const __half2*>(hidden + at);
            *reinterpret_cast<__half2*>(rows + at) =
                __floats2half2_rn(__low2float(on) > 0 ? to_range(sums[n][2 * h]) : 0.0f,
                                  __high2float(on) > 0 ? to_range(sums[n][2 * h + 1]) : 0.0f);
        }
    }
}

#endif

__global__ void __launch_bounds__(kThreads) forward_kernel(const __grid_constant__ FineStep step) {
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(16) unsigned char memory[];
    ForwardMemory& m = *reinterpret_cast<ForwardMemory*>(memory);
    const Samples& s = step.samples;
    const int count = *s.kept;
    if (static_cast<int>(blockIdx.x) * kColourTile >= count) return;
    load_weights(m.weights, step.network);
    clear_padding(m.inputs);
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    const int g = lane / 4, t = lane % 4;
    __half* hidden = m.hidden + warp * 16 * kHiddenRow;
    for (int first = static_cast<int>(blockIdx.x) * kColourTile; first < count;
         first += static_cast<int>(gridDim.x) * kColourTile) {
        __syncthreads();
        load_inputs(m.inputs, s, first, count);
        __syncthreads();
        float sums[kHiddenTiles][4];
        clear(sums);
        multiply_rows<kPaddedInputs / 16, kHiddenTiles, kColourInputRow, kColourInputRow>(
            sums, m.inputs + warp * 16 * kColourInputRow, m.weights.weight1);
        store_hidden(hidden, sums, nullptr);
        __syncwarp();
        clear(sums);
        multiply_rows<kHidden / 16, kHiddenTiles, kHiddenRow, kHiddenRow>(sums, hidden, m.weights.weight2);
        __syncwarp();
        store_hidden(hidden, sums, m.weights.bias2);
        __syncwarp();
        float out[2][4];
        clear(out);
        multiply_rows<kHidden / 16, 2, kHiddenRow, kHiddenRow>(out, hidden, m.weights.weight3);
        if (t > 1) continue;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = first + warp * 16 + g + 8 * h;
            if (i >= count) continue;
            float* colour = reinterpret_cast<float*>(s.colour + i);
            colour[2 * t] = sigmoid(out[0][2 * h] + m.weights.bias3[2 * t]);
            if (t == 0) colour[1] = sigmoid(out[0][2 * h + 1] + m.weights.bias3[1]);
        }
    }
#endif
}

/// Gradients of the weights, summed over the block's tiles, and of the features.
__global__ void __launch_bounds__(kThreads) backward_kernel(const __grid_constant__ FineStep step) {
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(16) unsigned char memory[];
    BackwardMemory& m = *reinterpret_cast<BackwardMemory*>(memory);
    const Samples& s = step.samples;
    const int count = *s.kept;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
    const int g = lane / 4, t = lane % 4;
    load_weights(m.weights, step.network);
    clear_padding(m.inputs);
    for (int i = thread; i < kColourTile * kOutputRow; i += kThreads) m.outputs[i] = __float2half(0.0f);

    constexpr int kInputTiles = kPaddedInputs / 8;
    float to_weight1[kInputTiles][4], to_weight2[kHiddenTiles][4], to_weight3[2][4];
    clear(to_weight1);
    clear(to_weight2);
    clear(to_weight3);
    float to_bias2 = 0, to_bias3 = 0;
    for (int first = static_cast<int>(blockIdx.x) * kColourTile; first < count;
         first += static_cast<int>(gridDim.x) * kColourTile) {
        __syncthreads();
        load_inputs(m.inputs, s, first, count);
        for (int i = thread; i < kColourTile; i += kThreads) {
            const float4 c = first + i < count ? s.colour[first + i] : float4{0, 0, 0, 0};
            store_halves(m.outputs + i * kOutputRow, {to_range(c.x), to_range(c.y), to_range(c.z), 0});
        }
        __syncthreads();
        __half* hidden1 = m.hidden1 + warp * 16 * kHiddenRow;
        __half* hidden2 = m.hidden2 + warp * 16 * kHiddenRow;
        __half* gradient2 = m.gradient2 + warp * 16 * kHiddenRow;
        {
            float sums[kHiddenTiles][4];
            clear(sums);
            multiply_rows<kPaddedInputs / 16, kHiddenTiles, kColourInputRow, kColourInputRow>(
                sums, m.inputs + warp * 16 * kColourInputRow, m.weights.weight1);
            store_hidden(hidden1, sums, nullptr);
            __syncwarp();
            clear(sums);
            multiply_rows<kHidden / 16, kHiddenTiles, kHiddenRow, kHiddenRow>(sums, hidden1, m.weights.weight2);
            store_hidden(hidden2, sums, m.weights.bias2);
            __syncwarp();
            clear(sums);
            multiply<1, kHiddenTiles, kOutputRow, kHiddenRow>(sums, m.outputs + warp * 16 * kOutputRow,
                                                              m.weights.weight3);
            store_gradient(gradient2, sums, hidden2);
        }
        __syncthreads();
        multiply_over_samples<2, kOutputRow, kHiddenRow>(to_weight3, m.outputs, m.hidden2 + warp * 16);
        multiply_over_samples<kHiddenTiles, kHiddenRow, kHiddenRow>(to_weight2, m.gradient2 + warp * 16, m.hidden1);
        {
            const int column = thread % kHidden, half = thread / kHidden;
            for (int i = half * (kColourTile / 2); i < (half + 1) * (kColourTile / 2); ++i) {
                to_bias2 += __half2float(m.gradient2[i * kHiddenRow + column]);
            }
            if (thread < 3) {
                for (int i = 0; i < kColourTile; ++i) to_bias3 += __half2float(m.outputs[i * kOutputRow + thread]);
            }
        }
        __syncthreads();
        {
            float sums[kHiddenTiles][4];
            clear(sums);
            multiply<kHidden / 16, kHiddenTiles, kHiddenRow, kHiddenRow>(sums, gradient2, m.weights.weight2);
            store_gradient(hidden2, sums, hidden1);
        }
        __syncwarp();
        float to_features[2][4];
        clear(to_features);
        multiply<kHidden / 16, 2, kHiddenRow, kColourInputRow>(to_features, hidden2, m.weights.weight1);
        const float unit = 1 / step.gradient_scale;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int column = 8 * n + 2 * t;
            if (column >= kFeatures) continue;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int i = first + warp * 16 + g + 8 * h;
                if (i >= count) continue;
                *reinterpret_cast<float2*>(s.features + int64_t{i} * kFeatures + column) = {
                    to_features[n][2 * h] * unit, to_features[n][2 * h + 1] * unit};
            }
        }
        __syncthreads();
        multiply_over_samples<kInputTiles, kHiddenRow, kColourInputRow>(to_weight1, m.hidden2 + warp * 16, m.inputs);
    }

    float* partial = step.network.partial + int64_t{blockIdx.x} * kNetworkNumbers;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = warp * 16 + g + 8 * h;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
#pragma unroll
            for (int n = 0; n < kInputTiles; ++n) {
                const int column = 8 * n + 2 * t + e;
                if (column < kNetworkInputs) partial[row * kNetworkInputs + column] = to_weight1[n][2 * h + e];
            }
#pragma unroll
            for (int n = 0; n < kHiddenTiles; ++n) {
                partial[kWeight2 + row * kHidden + 8 * n + 2 * t + e] = to_weight2[n][2 * h + e];
            }
            // Of the outputs: rows 0 to 2 only; the warp has the columns of its 16 hidden units.
            if (h == 0 && g < 3) {
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    partial[kWeight3 + g * kHidden + warp * 16 + 8 * n + 2 * t + e] = to_weight3[n][e];
                }
            }
        }
    }
    __syncthreads();
    float* halves = reinterpret_cast<float*>(m.gradient2);
    halves[thread] = to_bias2;
    __syncthreads();
    if (thread < kHidden) partial[kBias2 + thread] = halves[thread] + halves[thread + kHidden];
    if (thread < 3) partial[kBias3 + thread] = to_bias3;
#endif
}

}  // namespace

void prepare_colour_kernels() {
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(forward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(sizeof(ForwardMemory))));
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(backward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(sizeof(BackwardMemory))));
}

void launch_colour_forward(const FineStep& step, int multiprocessors, cudaStream_t stream) {
    forward_kernel<<<2 * multiprocessors, kThreads, sizeof(ForwardMemory), stream>>>(step);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

void launch_colour_backward(const FineStep& step, int multiprocessors, cudaStream_t stream) {
    backward_kernel<<<multiprocessors, kThreads, sizeof(BackwardMemory), stream>>>(step);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
