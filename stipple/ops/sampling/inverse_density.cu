#include "stipple/ops/common/radix_sort.h"
#include "stipple/ops/sampling/inverse_density_key.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kInverseDensityThreads = 256;

/// A thread for each row; it reads the end of its row of distances.
__global__ void make_keys(DeviceBatch batch, int64_t first_row, const float* distances_sq, int64_t rows,
                          int64_t columns, uint64_t seed, int dimension, uint64_t* keys) {
    const int64_t i = int64_t{blockIdx.x} * kInverseDensityThreads + threadIdx.x;
    if (i >= rows) return;
    const int64_t row = first_row + i, cloud = batch.cloud_of(row);
    keys[row] = row_key(seed, cloud, row - batch.begin(cloud), distances_sq + i * columns, columns, dimension);
}

__global__ void number_rows(int32_t* rows, int64_t n) {
    const int64_t i = int64_t{blockIdx.x} * kInverseDensityThreads + threadIdx.x;
    if (i < n) rows[i] = static_cast<int32_t>(i);
}

}  // namespace

void inverse_density_keys(const Batch& batch, int64_t first_row, View<const float, 2> distances_sq, uint64_t seed,
                          int dimension, View<uint64_t, 1> keys, Stream stream) {
    const CurrentDevice current(keys.device());
    const UploadedBatch uploaded(batch, raw(stream));
    make_keys<<<blocks_for(distances_sq.size(0), kInverseDensityThreads), kInverseDensityThreads, 0, raw(stream)>>>(
        uploaded.view(), first_row, distances_sq.data(), distances_sq.size(0), distances_sq.size(1), seed, dimension,
        keys.data());
    STIPPLE_CHECK_LAUNCH(make_keys);
}

void smallest_keys(View<const uint64_t, 1> keys, View<int32_t, 1> indices, bool& enough, Stream stream) {
    const CurrentDevice current(keys.device());
    const cudaStream_t on = raw(stream);
    const int64_t n = keys.size(0), m = indices.size(0);
    const Scratch<uint64_t> sorted(n, on);
    const Scratch<int32_t> rows(2 * n, on);
    number_rows<<<blocks_for(n, kInverseDensityThreads), kInverseDensityThreads, 0, on>>>(rows.get(), n);
    STIPPLE_CHECK_LAUNCH(number_rows);
    // The sort is stable: equal keys stay by ascending index.
    sort_pairs(keys.data(), sorted.get(), rows.get(), rows.get() + n, n, 64, on);
    sort_keys(rows.get() + n, indices.data(), m, on);
    uint64_t last = 0;
    STIPPLE_CHECK_CUDA(cudaMemcpyAsync(&last, sorted.get() + (m - 1), sizeof last, cudaMemcpyDeviceToHost, on));
    STIPPLE_CHECK_CUDA(cudaStreamSynchronize(on));
    enough = last != kNoKey;
}

}  // namespace stipple::ops::cuda
