#include "stipple/ops/grouping/scatter_kernel.h"
#include "stipple/ops/interpolate.h"

namespace stipple::ops::cuda {
namespace {

/// A row of threads for each (point, child): weights and indices are broadcast, rows are read coalesced, and the q
/// children of a point meet its rows in the cache. T is float or float4.
template <class T>
__global__ void interpolate_rows(const float* __restrict__ rows, int64_t stride, DeviceNeighbours near,
                                 const float* __restrict__ weights, int64_t sums, int64_t q, int64_t columns,
                                 float* __restrict__ out) {
    const int64_t s = row_of_thread();
    if (s >= sums) return;
    const int64_t i = q == 1 ? s : s / q, k = near.k, cloud = near.batch.cloud_of(i);
    for (int64_t l = threadIdx.x; l < columns; l += blockDim.x) {
        T sum{};
        for (int64_t j = 0; j < k; ++j) {
            const float w = weights[s * k + j];
            const int64_t row = near.named_in(cloud, near.indices[i * k + j]);
            if (w == 0 || row < 0) continue;
            sum = add_scaled(sum, w, reinterpret_cast<const T*>(rows + row * stride)[l]);
        }
        reinterpret_cast<T*>(out)[s * columns + l] = sum;
    }
}

/// A row of threads for each weight: partial dot products over the columns, then a sum over the row of threads.
__global__ void weight_gradients(const float* __restrict__ rows, int64_t stride, DeviceNeighbours near,
                                 const float* __restrict__ gradients, int64_t weights, int64_t q, int64_t columns,
                                 float* __restrict__ out) {
    const int64_t w = row_of_thread();
    double sum = 0;
    if (w < weights) {
        const int64_t s = w / near.k, j = w - s * near.k;
        const int64_t row = near.named(s / q, j);
        for (int64_t l = threadIdx.x; row >= 0 && l < columns; l += blockDim.x)
            sum += static_cast<double>(gradients[s * columns + l]) * static_cast<double>(rows[row * stride + l]);
    }
    sum = sum_over_lanes(sum, static_cast<int>(blockDim.x));
    if (w < weights && threadIdx.x == 0) out[w] = static_cast<float>(sum);
}

}  // namespace

void interpolate(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> weights, View<float, 3> out,
                 Stream stream_of_call) {
    const CurrentDevice current(rows.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, rows.batch, stream);
    const int64_t q = weights.size(1), c = rows.dimension(), stride = rows.rows.stride(0), sums = out.size(0) * q;
    if (is_aligned(rows.rows.data(), c, stride) && is_aligned(out.data(), c, c)) {
        const RowBlocks shape(sums, c / 4);
        interpolate_rows<float4><<<shape.grid, shape.block, 0, stream>>>(rows.rows.data(), stride, near.view(),
                                                                         weights.data(), sums, q, c / 4, out.data());
    } else {
        const RowBlocks shape(sums, c);
        interpolate_rows<float><<<shape.grid, shape.block, 0, stream>>>(rows.rows.data(), stride, near.view(),
                                                                        weights.data(), sums, q, c, out.data());
    }
    STIPPLE_CHECK_LAUNCH(interpolate_rows);
}

void interpolate_backward_rows(View<const float, 3> weights, const InvertedIndex& inverse, View<const float, 3> dL_dout,
                               View<float, 2> dL_drows, Stream stream) {
    const CurrentDevice current(weights.device());
    scatter(inverse, WeightedRows{weights.data(), dL_dout.data(), weights.size(2), dL_drows.size(1), weights.size(1)},
            dL_drows, raw(stream));
}

void interpolate_backward_weights(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> dL_dout,
                                  View<float, 3> dL_dweights, Stream stream_of_call) {
    const CurrentDevice current(rows.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, rows.batch, stream);
    const int64_t q = dL_dout.size(1), c = rows.dimension(), weights = dL_dweights.elements();
    const RowBlocks shape(weights, c);
    weight_gradients<<<shape.grid, shape.block, 0, stream>>>(rows.rows.data(), rows.rows.stride(0), near.view(),
                                                             dL_dout.data(), weights, q, c, dL_dweights.data());
    STIPPLE_CHECK_LAUNCH(weight_gradients);
}

}  // namespace stipple::ops::cuda
