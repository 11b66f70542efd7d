#include "stipple/ops/bilateral_weights.h"
#include "stipple/ops/grouping/bilateral_weights_term.h"
#include "stipple/ops/grouping/scatter_kernel.h"

namespace stipple::ops::cuda {
namespace {

/// A row of threads for each entry: squared differences over the columns, then a sum over the row of threads.
__global__ void measure(const float* __restrict__ rows, int64_t stride, const float* __restrict__ queries,
                        int64_t query_stride, DeviceNeighbours near, int64_t entries, int64_t columns, float beta,
                        float* __restrict__ similarity) {
    const int64_t e = row_of_thread();
    double sum = 0;
    int64_t row = -1;
    if (e < entries) {
        const int64_t i = e / near.k;
        row = near.named(i, e - i * near.k);
        for (int64_t l = threadIdx.x; row >= 0 && l < columns; l += blockDim.x) {
            const double d = __fsub_rn(rows[row * stride + l], queries[i * query_stride + l]);
            sum += d * d;
        }
    }
    sum = sum_over_lanes(sum, static_cast<int>(blockDim.x));
    if (e < entries && threadIdx.x == 0) similarity[e] = row < 0 ? 0.0f : similarity_of(sum, beta);
}

/// A row of threads for each entry, coalesced over the columns.
__global__ void measure_backward(const float* __restrict__ rows, int64_t stride, const float* __restrict__ queries,
                                 int64_t query_stride, DeviceNeighbours near, int64_t entries, int64_t columns,
                                 float beta, const float* __restrict__ similarity,
                                 const float* __restrict__ dL_dsimilarity, float* __restrict__ dL_doffsets) {
    const int64_t e = row_of_thread();
    if (e >= entries) return;
    const int64_t i = e / near.k, row = near.named(i, e - i * near.k);
    for (int64_t l = threadIdx.x; l < columns; l += blockDim.x) {
        float slope = 0;
        if (row >= 0)
            slope = similarity_slope(beta, similarity[e], dL_dsimilarity[e],
                                     __fsub_rn(rows[row * stride + l], queries[i * query_stride + l]));
        dL_doffsets[e * columns + l] = slope;
    }
}

/// A row of threads for each point, one thread a channel, neighbours in order; all reads coalesced.
__global__ void combine(const float* __restrict__ rows, int64_t stride, DeviceNeighbours near, int64_t m,
                        int64_t columns, const float* __restrict__ th, const float* __restrict__ psi, float guard,
                        float* __restrict__ out, float* __restrict__ denominator) {
    const int64_t i = row_of_thread();
    if (i >= m) return;
    const int64_t cloud = near.batch.cloud_of(i);
    for (int64_t l = threadIdx.x; l < columns; l += blockDim.x) {
        BilateralSum sum;
        for (int64_t j = 0; j < near.k; ++j) {
            const int64_t e = i * near.k + j, row = near.named_in(cloud, near.indices[e]);
            if (row >= 0) sum.add(th[e * columns + l], psi[e * columns + l], rows[row * stride + l]);
        }
        const double d = sum.denominator(guard);
        out[i * columns + l] = static_cast<float>(sum.values / d);
        denominator[i * columns + l] = static_cast<float>(d);
    }
}

/// A row of threads for each entry, coalesced over the channels.
__global__ void combine_backward(const float* __restrict__ rows, int64_t stride, DeviceNeighbours near, int64_t entries,
                                 int64_t columns, const float* __restrict__ th, const float* __restrict__ psi,
                                 float guard, const float* __restrict__ out, const float* __restrict__ denominator,
                                 const float* __restrict__ dL_dout, float* __restrict__ dL_dth,
                                 float* __restrict__ dL_dpsi) {
    const int64_t e = row_of_thread();
    if (e >= entries) return;
    const int64_t i = e / near.k, row = near.named(i, e - i * near.k);
    for (int64_t l = threadIdx.x; l < columns; l += blockDim.x) {
        const int64_t at = i * columns + l, to = e * columns + l;
        double slope = 0;
        if (row >= 0) slope = bilateral_slope(dL_dout[at], rows[row * stride + l], out[at], denominator[at], guard);
        dL_dth[to] = row < 0 ? 0.0f : static_cast<float>(slope * psi[to]);
        dL_dpsi[to] = row < 0 ? 0.0f : static_cast<float>(slope * th[to]);
    }
}

}  // namespace

void bilateral_similarity(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                          View<float, 2> similarity, Stream stream_of_call) {
    const CurrentDevice current(rows.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, rows.batch, stream);
    const int64_t entries = neighbours.entries(), c = rows.dimension();
    const RowBlocks shape(entries, c);
    measure<<<shape.grid, shape.block, 0, stream>>>(rows.rows.data(), rows.rows.stride(0), queries.rows.data(),
                                                    queries.rows.stride(0), near.view(), entries, c, beta,
                                                    similarity.data());
    STIPPLE_CHECK_LAUNCH(measure);
}

void bilateral_similarity_backward(const Clouds& rows, const Clouds& queries, const Neighbours& neighbours, float beta,
                                   View<const float, 2> similarity, View<const float, 2> dL_dsimilarity,
                                   View<float, 3> dL_doffsets, Stream stream_of_call) {
    const CurrentDevice current(rows.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, rows.batch, stream);
    const int64_t entries = neighbours.entries(), c = rows.dimension();
    const RowBlocks shape(entries, c);
    measure_backward<<<shape.grid, shape.block, 0, stream>>>(
        rows.rows.data(), rows.rows.stride(0), queries.rows.data(), queries.rows.stride(0), near.view(), entries, c,
        beta, similarity.data(), dL_dsimilarity.data(), dL_doffsets.data());
    STIPPLE_CHECK_LAUNCH(measure_backward);
}

void bilateral_combine(const Clouds& rows, const Neighbours& neighbours, View<const float, 3> th,
                       View<const float, 3> psi, float guard, View<float, 2> out, View<float, 2> denominator,
                       Stream stream_of_call) {
    const CurrentDevice current(rows.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, rows.batch, stream);
    const int64_t m = neighbours.rows(), c = rows.dimension();
    const RowBlocks shape(m, c);
    combine<<<shape.grid, shape.block, 0, stream>>>(rows.rows.data(), rows.rows.stride(0), near.view(), m, c, th.data(),
                                                    psi.data(), guard, out.data(), denominator.data());
    STIPPLE_CHECK_LAUNCH(combine);
}

void bilateral_combine_backward(const Clouds& rows, const Neighbours& neighbours, const InvertedIndex& inverse,
                                View<const float, 3> th, View<const float, 3> psi, float guard,
                                View<const float, 2> out, View<const float, 2> denominator,
                                View<const float, 2> dL_dout, View<float, 3> dL_dth, View<float, 3> dL_dpsi,
                                View<float, 2> dL_drows, Stream stream_of_call) {
    const CurrentDevice current(rows.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, rows.batch, stream);
    const int64_t entries = neighbours.entries(), k = neighbours.k(), c = rows.dimension();
    if (dL_dth.elements() > 0) {
        const RowBlocks shape(entries, c);
        combine_backward<<<shape.grid, shape.block, 0, stream>>>(
            rows.rows.data(), rows.rows.stride(0), near.view(), entries, c, th.data(), psi.data(), guard, out.data(),
            denominator.data(), dL_dout.data(), dL_dth.data(), dL_dpsi.data());
        STIPPLE_CHECK_LAUNCH(combine_backward);
    }
    if (dL_drows.elements() > 0)
        scatter(inverse, BilateralRows{th.data(), psi.data(), dL_dout.data(), denominator.data(), k, c}, dL_drows,
                stream);
}

}  // namespace stipple::ops::cuda
