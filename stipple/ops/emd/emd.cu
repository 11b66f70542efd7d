#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/emd.h"
#include "stipple/ops/emd/auction.h"

namespace stipple::ops::cuda {
namespace {

/// A thread for each point of a. The matching is a bijection, so every row of either gradient has one writer.
__global__ void emd_backward_kernel(const float* a, int64_t stride_a, const float* b, int64_t stride_b,
                                    DeviceBatch batch, const int32_t* matching, const float* dL_dcost, float* dL_da,
                                    float* dL_db, bool squared) {
    const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row >= batch.rows) return;
    const int64_t cloud = batch.cloud_of(row), first = batch.begin(cloud), n = batch.end(cloud) - first;
    const int32_t j = matching[row];
    float grad[3] = {0.0f, 0.0f, 0.0f};
    if (j >= 0 && j < n)
        assignment::pair_gradient(a + row * stride_a, b + (first + j) * stride_b,
                                  dL_dcost[cloud] / static_cast<float>(n), squared, grad);
    for (int axis = 0; axis < 3; ++axis) {
        if (dL_da != nullptr) dL_da[3 * row + axis] = grad[axis];
        if (dL_db != nullptr && j >= 0 && j < n) dL_db[3 * (first + j) + axis] = -grad[axis];
    }
}

}  // namespace

void emd_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, View<const int32_t, 1> matching,
                  View<const float, 1> dL_dcost, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream) {
    const CurrentDevice current(a.device());
    const UploadedBatch batch(a.batch, raw(stream));
    if (dL_db.data() != nullptr)  // rows of b that are not matched
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(dL_db.data(), 0, dL_db.elements() * sizeof(float), raw(stream)));
    emd_backward_kernel<<<blocks_for(a.batch.rows(), 256), 256, 0, raw(stream)>>>(
        a.rows.data(), a.rows.stride(0), b.rows.data(), b.rows.stride(0), batch.view(), matching.data(),
        dL_dcost.data(), dL_da.data(), dL_db.data(), norm == DistanceNorm::squared);
    STIPPLE_CHECK_LAUNCH(emd_backward_kernel);
}

}  // namespace stipple::ops::cuda
