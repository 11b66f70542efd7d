// The colour network in single precision, for GPUs without the half products of colour.cu and for comparisons with the
// CPU. A block takes tiles of kTile samples; a thread has 4 samples times 4 hidden units of them in registers. Sums run
// in an order that depends on the number of blocks alone.

#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/step.cuh"
#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance::cuda {
namespace {

constexpr int kSingleTile = 32, kSingleThreads = 256, kChunk = 16;
constexpr int kSingleWarps = kSingleThreads / kWarp, kOwnSamples = kSingleTile / kSingleWarps,
              kOwnUnits = kHidden / kWarp;
static_assert(kOwnSamples == 4 && kOwnUnits == 4);
constexpr int kUnitRow = kHidden + 4, kInputRow = kNetworkInputs + 3;

struct SingleMemory {
    float input[kSingleTile * kInputRow];
    float hidden1[kSingleTile * kUnitRow];    // then its gradient
    float gradient2[kSingleTile * kUnitRow];  // forward: not used
    float chunk[kChunk * kHidden];            // some columns of weights, by input
};
static_assert(sizeof(SingleMemory) <= 48 * 1024);

using Own = float[kOwnSamples][kOwnUnits];  // of a thread: samples 4 warp + i, units 4 lane + j

/// own += rows of `a` times weights: by_output [kHidden, inputs], or [inputs, kHidden] where they are to be transposed.
template <bool kTransposed>
__device__ void add_products(Own& own, const float* a, int row_length, const float* weights, int inputs, float* chunk) {
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
    for (int first = 0; first < inputs; first += kChunk) {
        __syncthreads();
        for (int i = thread; i < kChunk * kHidden; i += kSingleThreads) {
            const int k = kTransposed ? i / kHidden : i % kChunk, unit = kTransposed ? i % kHidden : i / kChunk;
            const int place = kTransposed ? (first + k) * kHidden + unit : unit * inputs + first + k;
            chunk[k * kHidden + unit] = first + k < inputs ? weights[place] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kChunk; ++k) {
            if (first + k >= inputs) break;
            const float4 w = *reinterpret_cast<const float4*>(chunk + k * kHidden + kOwnUnits * lane);
#pragma unroll
            for (int i = 0; i < kOwnSamples; ++i) {
                const float x = a[(kOwnSamples * warp + i) * row_length + first + k];
                own[i][0] += x * w.x, own[i][1] += x * w.y, own[i][2] += x * w.z, own[i][3] += x * w.w;
            }
        }
    }
}

__device__ void store_own(float* rows, const Own& own) {
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
#pragma unroll
    for (int i = 0; i < kOwnSamples; ++i) {
        *reinterpret_cast<float4*>(rows + (kOwnSamples * warp + i) * kUnitRow + kOwnUnits * lane) = {
            own[i][0], own[i][1], own[i][2], own[i][3]};
    }
}

__device__ void rectify(Own& own) {
#pragma unroll
    for (int i = 0; i < kOwnSamples; ++i) {
#pragma unroll
        for (int j = 0; j < kOwnUnits; ++j) own[i][j] = fmaxf(own[i][j], 0);
    }
}

/// The inputs of a tile, zeros where there are no samples; its first hidden layer in memory, the second in `hidden2`.
__device__ void hidden_layers(SingleMemory& m, const FineStep& step, int first, int count, Own& hidden2) {
    const Samples& s = step.samples;
    const float* w = step.network.value;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kSingleTile * kNetworkInputs; i += kSingleThreads) {
        const int row = i / kNetworkInputs, column = i % kNetworkInputs, sample = first + row;
        float x = 0;
        if (sample < count) {
            x = column < kFeatures ? s.features[int64_t{sample} * kFeatures + column]
                                   : s.view[int64_t{s.ray[sample]} * kViewCode + column - kFeatures];
        }
        m.input[row * kInputRow + column] = x;
    }
    Own hidden1 = {};
    add_products<false>(hidden1, m.input, kInputRow, w, kNetworkInputs, m.chunk);
    rectify(hidden1);
    store_own(m.hidden1, hidden1);
#pragma unroll
    for (int i = 0; i < kOwnSamples; ++i) {
#pragma unroll
        for (int j = 0; j < kOwnUnits; ++j) hidden2[i][j] = w[kBias2 + kOwnUnits * lane + j];
    }
    add_products<false>(hidden2, m.hidden1, kUnitRow, w + kWeight2, kHidden, m.chunk);
    rectify(hidden2);
}

__global__ void __launch_bounds__(kSingleThreads) single_forward_kernel(const __grid_constant__ FineStep step) {
    __shared__ __align__(16) SingleMemory m;
    const Samples& s = step.samples;
    const float* w = step.network.value;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
    const int count = *s.kept;
    for (int first = static_cast<int>(blockIdx.x) * kSingleTile; first < count;
         first += static_cast<int>(gridDim.x) * kSingleTile) {
        Own hidden2;
        hidden_layers(m, step, first, count, hidden2);
#pragma unroll
        for (int o = 0; o < 3; ++o) {
#pragma unroll
            for (int i = 0; i < kOwnSamples; ++i) {
                float sum = 0;
#pragma unroll
                for (int j = 0; j < kOwnUnits; ++j) {
                    sum += w[kWeight3 + o * kHidden + kOwnUnits * lane + j] * hidden2[i][j];
                }
                sum = warp_sum(sum);
                const int sample = first + kOwnSamples * warp + i;
                if (lane == i && sample < count) {
                    reinterpret_cast<float*>(s.colour + sample)[o] = sigmoid(sum + w[kBias3 + o]);
                }
            }
        }
    }
}

/// What a thread sums up over all tiles of its block.
struct OwnGradients {
    float weight1[8][3] = {};  // rows 8 (thread / 16) + i, columns thread % 16 + 16 j
    float weight2[8][8] = {};  // the same rows, columns 4 (thread % 16) + j and 64 more
    float weight3[3][kOwnUnits] = {}, bias2[kOwnUnits] = {}, bias3[3] = {};  // of the warp's samples
};

/// Gradients of weight3 and the biases, and the gradient before the second rectifier, in `own` in place of hidden2.
__device__ void output_layer_back(Own& own, OwnGradients& to, const FineStep& step, int first, int count) {
    const float* w = step.network.value;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
#pragma unroll
    for (int i = 0; i < kOwnSamples; ++i) {
        const int sample = first + kOwnSamples * warp + i;
        const float4 colour = sample < count ? step.samples.colour[sample] : float4{0, 0, 0, 0};
        const float out[3] = {colour.x, colour.y, colour.z};
#pragma unroll
        for (int o = 0; o < 3; ++o) to.bias3[o] += out[o];
#pragma unroll
        for (int j = 0; j < kOwnUnits; ++j) {
            float sum = 0;
#pragma unroll
            for (int o = 0; o < 3; ++o) {
                sum += w[kWeight3 + o * kHidden + kOwnUnits * lane + j] * out[o];
                to.weight3[o][j] += out[o] * own[i][j];
            }
            own[i][j] = own[i][j] > 0 ? sum : 0;
            to.bias2[j] += own[i][j];
        }
    }
}

__device__ void add_weight2(OwnGradients& to, const SingleMemory& m) {
    const int thread = static_cast<int>(threadIdx.x), row = 8 * (thread / 16), column = 4 * (thread % 16);
    for (int sample = 0; sample < kSingleTile; ++sample) {
        const float* g = m.gradient2 + sample * kUnitRow + row;
        const float4 h[2] = {*reinterpret_cast<const float4*>(m.hidden1 + sample * kUnitRow + column),
                             *reinterpret_cast<const float4*>(m.hidden1 + sample * kUnitRow + 64 + column)};
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                to.weight2[i][4 * half] += g[i] * h[half].x;
                to.weight2[i][4 * half + 1] += g[i] * h[half].y;
                to.weight2[i][4 * half + 2] += g[i] * h[half].z;
                to.weight2[i][4 * half + 3] += g[i] * h[half].w;
            }
        }
    }
}

/// The gradient of the first hidden layer is in m.hidden1.
__device__ void add_weight1(OwnGradients& to, const SingleMemory& m) {
    const int thread = static_cast<int>(threadIdx.x), row = 8 * (thread / 16), column = thread % 16;
    for (int sample = 0; sample < kSingleTile; ++sample) {
        const float* g = m.hidden1 + sample * kUnitRow + row;
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            if (column + 16 * j >= kNetworkInputs) continue;
            const float x = m.input[sample * kInputRow + column + 16 * j];
#pragma unroll
            for (int i = 0; i < 8; ++i) to.weight1[i][j] += g[i] * x;
        }
    }
}

__device__ void store_feature_gradients(const Own& gradient1, const FineStep& step, int first, int count) {
    const float* w = step.network.value;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
    for (int column = 0; column < kFeatures; ++column) {
#pragma unroll
        for (int i = 0; i < kOwnSamples; ++i) {
            float sum = 0;
#pragma unroll
            for (int j = 0; j < kOwnUnits; ++j) {
                sum += w[(kOwnUnits * lane + j) * kNetworkInputs + column] * gradient1[i][j];
            }
            sum = warp_sum(sum);
            const int sample = first + kOwnSamples * warp + i;
            if (lane == i && sample < count) {
                step.samples.features[int64_t{sample} * kFeatures + column] = sum / step.gradient_scale;
            }
        }
    }
}

/// `scratch` has room for [kSingleWarps, 8 kHidden].
__device__ void store_gradients(const OwnGradients& of, float* partial, float* scratch) {
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
    const int row = 8 * (thread / 16), column = thread % 16;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            if (column + 16 * j < kNetworkInputs) {
                partial[(row + i) * kNetworkInputs + column + 16 * j] = of.weight1[i][j];
            }
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            partial[kWeight2 + (row + i) * kHidden + 4 * column + j % 4 + 64 * (j / 4)] = of.weight2[i][j];
        }
    }
    // Warps have different samples: rows 0 to 2 are weight3, 3 is bias2, 4 is bias3.
    constexpr int kRows = 5;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kOwnUnits; ++j) {
        float* column_of = scratch + warp * kRows * kHidden + kOwnUnits * lane + j;
#pragma unroll
        for (int o = 0; o < 3; ++o) column_of[o * kHidden] = of.weight3[o][j];
        column_of[3 * kHidden] = of.bias2[j];
        column_of[4 * kHidden] = j < 3 ? of.bias3[j] : 0;
    }
    __syncthreads();
    for (int i = thread; i < 4 * kHidden + 3; i += kSingleThreads) {
        float sum = 0;
        for (int k = 0; k < kSingleWarps; ++k) sum += scratch[k * kRows * kHidden + i];
        const int place = i < 3 * kHidden   ? kWeight3 + i
                          : i < 4 * kHidden ? kBias2 + i - 3 * kHidden
                                            : kBias3 + i - 4 * kHidden;
        partial[place] = sum;
    }
}
static_assert(kSingleWarps * 5 * kHidden <= 2 * kSingleTile * kUnitRow, "scratch lies over hidden1 and gradient2");

__global__ void __launch_bounds__(kSingleThreads) single_backward_kernel(const __grid_constant__ FineStep step) {
    __shared__ __align__(16) SingleMemory m;
    const float* w = step.network.value;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
    const int count = *step.samples.kept;
    OwnGradients to;
    for (int first = static_cast<int>(blockIdx.x) * kSingleTile; first < count;
         first += static_cast<int>(gridDim.x) * kSingleTile) {
        Own own;
        hidden_layers(m, step, first, count, own);
        output_layer_back(own, to, step, first, count);
        store_own(m.gradient2, own);
        Own gradient1 = {};
        add_products<true>(gradient1, m.gradient2, kUnitRow, w + kWeight2, kHidden, m.chunk);
#pragma unroll
        for (int i = 0; i < kOwnSamples; ++i) {
#pragma unroll
            for (int j = 0; j < kOwnUnits; ++j) {
                const float on = m.hidden1[(kOwnSamples * warp + i) * kUnitRow + kOwnUnits * lane + j];
                if (!(on > 0)) gradient1[i][j] = 0;
            }
        }
        add_weight2(to, m);
        __syncthreads();
        store_own(m.hidden1, gradient1);
        __syncthreads();
        add_weight1(to, m);
        store_feature_gradients(gradient1, step, first, count);
    }
    store_gradients(to, step.network.partial + int64_t{blockIdx.x} * kNetworkNumbers, m.hidden1);
}

}  // namespace

void launch_colour_single(const FineStep& step, bool backward, int multiprocessors, cudaStream_t stream) {
    if (backward) {
        single_backward_kernel<<<multiprocessors, kSingleThreads, 0, stream>>>(step);
    } else {
        single_forward_kernel<<<4 * multiprocessors, kSingleThreads, 0, stream>>>(step);
    }
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
