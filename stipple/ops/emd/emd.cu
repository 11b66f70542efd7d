#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/emd/auction.h"

namespace stipple::ops::cuda {
namespace {

/// A thread for each point of a. The matching is a bijection, so every row of either gradient has one writer.
__global__ void emd_gradient_kernel(const float* a, int64_t stride_a, const float* b, int64_t stride_b,
                                    DeviceBatch batch, const int32_t* matching, const float* grad_cost, float* grad_a,
                                    float* grad_b, bool squared) {
    const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row >= batch.rows) return;
    const int64_t cloud = batch.cloud_of(row), first = batch.begin(cloud), n = batch.end(cloud) - first;
    const int32_t j = matching[row];
    float grad[3] = {0.0f, 0.0f, 0.0f};
    if (j >= 0 && j < n)
        assignment::pair_gradient(a + row * stride_a, b + (first + j) * stride_b,
                                  grad_cost[cloud] / static_cast<float>(n), squared, grad);
    for (int axis = 0; axis < 3; ++axis) {
        if (grad_a != nullptr) grad_a[3 * row + axis] = grad[axis];
        if (grad_b != nullptr && j >= 0 && j < n) grad_b[3 * (first + j) + axis] = -grad[axis];
    }
}

}  // namespace

void emd_gradient(const Clouds& a, const Clouds& b, View<const int32_t, 1> matching, View<const float, 1> grad_cost,
                  View<float, 2> grad_a, View<float, 2> grad_b, bool squared, Stream stream) {
    const CurrentDevice current(a.device());
    const UploadedBatch batch(a.batch, raw(stream));
    if (grad_b.data() != nullptr)  // rows of b that are not matched
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(grad_b.data(), 0, grad_b.elements() * sizeof(float), raw(stream)));
    emd_gradient_kernel<<<blocks_for(a.batch.rows(), 256), 256, 0, raw(stream)>>>(
        a.rows.data(), a.rows.stride(0), b.rows.data(), b.rows.stride(0), batch.view(), matching.data(),
        grad_cost.data(), grad_a.data(), grad_b.data(), squared);
    STIPPLE_CHECK_LAUNCH(emd_gradient_kernel);
}

}  // namespace stipple::ops::cuda
