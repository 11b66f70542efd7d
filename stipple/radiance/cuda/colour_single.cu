// The colour network in single precision: a block takes rays, a thread a hidden unit. Slow and exact; sums run in an
// order that depends on the number of blocks alone.

#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/step.cuh"
#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance::cuda {
namespace {

struct Units {
    float input[kNetworkInputs], hidden1[kHidden], hidden2[kHidden];
    float gradient1[kHidden], gradient2[kHidden];
};

__device__ void hidden_layers(Units& u, const FineStep& step, int i, int r) {
    const int unit = static_cast<int>(threadIdx.x);
    const float* w = step.network.value;
    __syncthreads();
    if (unit < kFeatures) u.input[unit] = step.samples.features[int64_t{i} * kFeatures + unit];
    if (unit < kViewCode) u.input[kFeatures + unit] = step.samples.view[int64_t{r} * kViewCode + unit];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < kNetworkInputs; ++k) sum += w[unit * kNetworkInputs + k] * u.input[k];
    u.hidden1[unit] = fmaxf(sum, 0);
    __syncthreads();
    sum = w[kBias2 + unit];
    for (int k = 0; k < kHidden; ++k) sum += w[kWeight2 + unit * kHidden + k] * u.hidden1[k];
    u.hidden2[unit] = fmaxf(sum, 0);
    __syncthreads();
}

__global__ void __launch_bounds__(kHidden) single_forward_kernel(const __grid_constant__ FineStep step) {
    __shared__ Units u;
    const Samples& s = step.samples;
    const float* w = step.network.value;
    const int unit = static_cast<int>(threadIdx.x);
    for (int r = static_cast<int>(blockIdx.x); r < step.constants.rays; r += static_cast<int>(gridDim.x)) {
        const int first = s.first_of[r], kept = s.kept_of[r];
        for (int i = first; first >= 0 && i < first + kept; ++i) {
            hidden_layers(u, step, i, r);
            if (unit >= 3) continue;
            float sum = w[kBias3 + unit];
            for (int k = 0; k < kHidden; ++k) sum += w[kWeight3 + unit * kHidden + k] * u.hidden2[k];
            reinterpret_cast<float*>(s.colour + i)[unit] = sigmoid(sum);
        }
    }
}

__global__ void __launch_bounds__(kHidden) single_backward_kernel(const __grid_constant__ FineStep step) {
    __shared__ Units u;
    const Samples& s = step.samples;
    const float* w = step.network.value;
    const int unit = static_cast<int>(threadIdx.x);
    float* partial = step.network.partial + int64_t{blockIdx.x} * kNetworkNumbers;
    for (int k = unit; k < kNetworkNumbers; k += kHidden) partial[k] = 0;
    __syncthreads();
    for (int r = static_cast<int>(blockIdx.x); r < step.constants.rays; r += static_cast<int>(gridDim.x)) {
        const int first = s.first_of[r], kept = s.kept_of[r];
        for (int i = first; first >= 0 && i < first + kept; ++i) {
            hidden_layers(u, step, i, r);
            const float4 colour = s.colour[i];
            const float out[3] = {colour.x, colour.y, colour.z};
            float sum = 0;
            for (int o = 0; o < 3; ++o) {
                sum += w[kWeight3 + o * kHidden + unit] * out[o];
                partial[kWeight3 + o * kHidden + unit] += out[o] * u.hidden2[unit];
                if (unit == o) partial[kBias3 + o] += out[o];
            }
            u.gradient2[unit] = u.hidden2[unit] > 0 ? sum : 0;
            __syncthreads();
            sum = 0;
            for (int k = 0; k < kHidden; ++k) sum += w[kWeight2 + k * kHidden + unit] * u.gradient2[k];
            u.gradient1[unit] = u.hidden1[unit] > 0 ? sum : 0;
            for (int k = 0; k < kHidden; ++k) {
                partial[kWeight2 + k * kHidden + unit] += u.gradient2[k] * u.hidden1[unit];
            }
            partial[kBias2 + unit] += u.gradient2[unit];
            __syncthreads();
            for (int k = 0; k < kNetworkInputs; ++k) {
                partial[unit * kNetworkInputs + k] += u.gradient1[unit] * u.input[k];
            }
            if (unit < kFeatures) {
                sum = 0;
                for (int k = 0; k < kHidden; ++k) sum += w[k * kNetworkInputs + unit] * u.gradient1[k];
                s.features[int64_t{i} * kFeatures + unit] = sum / step.gradient_scale;
            }
        }
    }
}

}  // namespace

void launch_colour_single(const FineStep& step, bool backward, cudaStream_t stream) {
    if (backward) {
        single_backward_kernel<<<step.network.blocks, kHidden, 0, stream>>>(step);
    } else {
        single_forward_kernel<<<2048, kHidden, 0, stream>>>(step);
    }
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
