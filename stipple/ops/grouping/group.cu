#include "stipple/ops/group.h"
#include "stipple/ops/grouping/grouping_cuda.h"

namespace stipple::ops::cuda {
namespace {

/// A row of threads for each entry; reads and writes are coalesced over the columns. T is float or float4.
template <class T>
__global__ void group_rows(const float* __restrict__ rows, int64_t stride, DeviceNeighbours near, int64_t entries,
                           const float* __restrict__ centres, int64_t columns, float* __restrict__ out) {
    const int64_t e = row_of_thread();
    if (e >= entries) return;
    const int64_t i = near.k == 1 ? e : e / near.k;
    const int64_t row = near.named_in(near.batch.cloud_of(i), near.indices[e]);
    const T* from = reinterpret_cast<const T*>(rows + row * stride);
    const T* centre = reinterpret_cast<const T*>(centres) + i * columns;
    T* to = reinterpret_cast<T*>(out) + e * columns;
    for (int64_t l = threadIdx.x; l < columns; l += blockDim.x) {
        T value{};
        if (row >= 0) {
            value = from[l];
            if (centres != nullptr) value = sub(value, centre[l]);
        }
        to[l] = value;
    }
}

/// A row of threads for each centre, one thread a column, neighbours in order.
__global__ void sum_centres(DeviceNeighbours near, int64_t m, const float* __restrict__ gradients, int64_t columns,
                            float* __restrict__ out) {
    const int64_t i = row_of_thread();
    if (i >= m) return;
    const int64_t cloud = near.batch.cloud_of(i);
    for (int64_t l = threadIdx.x; l < columns; l += blockDim.x) {
        double sum = 0;
        for (int64_t j = 0; j < near.k; ++j) {
            const int64_t e = i * near.k + j;
            if (near.named_in(cloud, near.indices[e]) >= 0) sum += gradients[e * columns + l];
        }
        out[i * columns + l] = static_cast<float>(-sum);
    }
}

}  // namespace

void group(const Clouds& rows, const Neighbours& neighbours, const float* centres, View<float, 3> out,
           Stream stream_of_call) {
    const CurrentDevice current(rows.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, rows.batch, stream);
    const int64_t entries = neighbours.entries(), c = rows.dimension(), stride = rows.rows.stride(0);
    if (is_aligned(rows.rows.data(), c, stride) && is_aligned(out.data(), c, c) && is_aligned(centres, c, c)) {
        const RowBlocks shape(entries, c / 4);
        group_rows<float4><<<shape.grid, shape.block, 0, stream>>>(rows.rows.data(), stride, near.view(), entries,
                                                                   centres, c / 4, out.data());
    } else {
        const RowBlocks shape(entries, c);
        group_rows<float><<<shape.grid, shape.block, 0, stream>>>(rows.rows.data(), stride, near.view(), entries,
                                                                  centres, c, out.data());
    }
    STIPPLE_CHECK_LAUNCH(group_rows);
}

void group_backward_centres(const Neighbours& neighbours, const Batch& rows, View<const float, 3> dL_dout,
                            View<float, 2> dL_dcentres, Stream stream_of_call) {
    const CurrentDevice current(neighbours.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, rows, stream);
    const int64_t m = neighbours.rows(), c = dL_dout.size(2);
    const RowBlocks shape(m, c);
    sum_centres<<<shape.grid, shape.block, 0, stream>>>(near.view(), m, dL_dout.data(), c, dL_dcentres.data());
    STIPPLE_CHECK_LAUNCH(sum_centres);
}

}  // namespace stipple::ops::cuda
