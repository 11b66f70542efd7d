#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/grouping/three_interpolate_row.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kThreeInterpolateThreads = 256;

/// A thread a row: its k numbers lie in one or two sectors.
__global__ void weigh(const float* __restrict__ distances_sq, int64_t m, int64_t k, InverseDistance options,
                      float* __restrict__ weights) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < m) three_weights_row(distances_sq + i * k, k, options, weights + i * k);
}

__global__ void weigh_backward(const float* __restrict__ distances_sq, int64_t m, int64_t k, InverseDistance options,
                               const float* __restrict__ dL_dweights, float* __restrict__ dL_ddistances_sq) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < m)
        three_weights_backward_row(distances_sq + i * k, k, options, dL_dweights + i * k, dL_ddistances_sq + i * k);
}

}  // namespace

void three_weights(View<const float, 2> distances_sq, const InverseDistance& options, View<float, 2> weights,
                   Stream stream) {
    const CurrentDevice current(weights.device());
    const int64_t m = weights.size(0), k = weights.size(1);
    weigh<<<blocks_for(m, kThreeInterpolateThreads), kThreeInterpolateThreads, 0, raw(stream)>>>(
        distances_sq.data(), m, k, options, weights.data());
    STIPPLE_CHECK_LAUNCH(weigh);
}

void three_weights_backward(View<const float, 2> distances_sq, const InverseDistance& options,
                            View<const float, 2> dL_dweights, View<float, 2> dL_ddistances_sq, Stream stream) {
    const CurrentDevice current(dL_dweights.device());
    const int64_t m = dL_dweights.size(0), k = dL_dweights.size(1);
    weigh_backward<<<blocks_for(m, kThreeInterpolateThreads), kThreeInterpolateThreads, 0, raw(stream)>>>(
        distances_sq.data(), m, k, options, dL_dweights.data(), dL_ddistances_sq.data());
    STIPPLE_CHECK_LAUNCH(weigh_backward);
}

}  // namespace stipple::ops::cuda
