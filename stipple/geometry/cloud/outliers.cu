#include "stipple/geometry/cloud/outliers_cuda.h"
#include "stipple/geometry/cloud/outliers_mean.h"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::geometry::cuda {
namespace {

constexpr int kOutliersThreads = 128;

/// A thread for each row.
__global__ void mean_rows(const float* distances_sq, int64_t rows, int64_t k, double* means) {
    const int64_t i = int64_t{blockIdx.x} * kOutliersThreads + threadIdx.x;
    if (i < rows) means[i] = mean_distance(distances_sq + i * k, k);
}

template <class T>
void copy(T* to, const T* from, int64_t count, cudaMemcpyKind kind, cudaStream_t stream) {
    STIPPLE_CHECK_CUDA(cudaMemcpyAsync(to, from, count * sizeof(T), kind, stream));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace

void mean_distances(View<const float, 2> distances_sq, double* means, Stream stream) {
    const ops::cuda::CurrentDevice current(distances_sq.device());
    const cudaStream_t on = ops::cuda::raw(stream);
    const int64_t rows = distances_sq.size(0);
    const ops::cuda::Scratch<double> found(rows, on);
    mean_rows<<<ops::cuda::blocks_for(rows, kOutliersThreads), kOutliersThreads, 0, on>>>(
        distances_sq.data(), rows, distances_sq.size(1), found.get());
    STIPPLE_CHECK_LAUNCH(mean_rows);
    copy(means, found.get(), rows, cudaMemcpyDeviceToHost, on);
}

void to_host(View<const int32_t, 1> from, int32_t* to, Stream stream) {
    const ops::cuda::CurrentDevice current(from.device());
    copy(to, from.data(), from.size(0), cudaMemcpyDeviceToHost, ops::cuda::raw(stream));
}

void to_device(const uint8_t* from, View<uint8_t, 1> to, Stream stream) {
    const ops::cuda::CurrentDevice current(to.device());
    copy(to.data(), from, to.size(0), cudaMemcpyHostToDevice, ops::cuda::raw(stream));
}

}  // namespace stipple::geometry::cuda
