#include "stipple/core/cuda/check.h"
#include "stipple/radiance/cuda/environment.cuh"

namespace stipple::radiance::cuda {
namespace {

template <bool kFixed>
__global__ void __launch_bounds__(256)
    environment_kernel(const __grid_constant__ EnvironmentMemory map, const StepState* state, float own_rate) {
    const auto i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= 3 * map.side * map.side) return;
    const float g = take_gradient<kFixed>(map.gradient, i);
    if (g != 0) adam(map.value[i], map.mean[i], map.square[i], g, own_rate * (state->rate * state->correction));
}

}  // namespace

void launch_optimise_environment(const EnvironmentMemory& map, const StepState* state, float rate, bool fixed,
                                 cudaStream_t stream) {
    if (map.side == 0) return;
    const int blocks = (3 * map.side * map.side + 255) / 256;
    (fixed ? environment_kernel<true> : environment_kernel<false>)<<<blocks, 256, 0, stream>>>(map, state, rate);
    STIPPLE_CHECK_CUDA(cudaGetLastError());
}

}  // namespace stipple::radiance::cuda
