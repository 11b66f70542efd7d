#include "stipple/ops/grouping/grouping_cuda.h"
#include "stipple/ops/grouping/kernel_interpolate_term.h"
#include "stipple/ops/kernel_interpolate.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kKernelInterpolateWarps = 8;  // of a block

/// What every kernel here reads.
struct KernelInterpolateInputs {
    const float *points, *queries, *kernel;
    int64_t point_stride, query_stride, q;
    DeviceNeighbours near;
    KernelTerm term;
    KernelWeights::Normalise normalise;

    /// The offset of neighbour j of query i from kernel point r; false for a missing neighbour.
    __device__ bool offset(int64_t i, int64_t cloud, int64_t r, int64_t j, float d[3]) const {
        const int64_t row = near.named_in(cloud, near.indices[i * near.k + j]);
        if (row < 0) return false;
        for (int axis = 0; axis < 3; ++axis)
            d[axis] = __fsub_rn(__fsub_rn(points[row * point_stride + axis], queries[i * query_stride + axis]),
                                kernel[3 * r + axis]);
        return true;
    }

    /// T of neighbour j, 0 for a missing one.
    __device__ float weight(int64_t i, int64_t cloud, int64_t r, int64_t j) const {
        float d[3];
        return offset(i, cloud, r, j, d) ? term.weight(d[0], d[1], d[2]) : 0.0f;
    }

    /// dL/dd of neighbour j at kernel point r.
    __device__ void gradient(int64_t i, int64_t cloud, int64_t r, int64_t j, const KernelPoint& point,
                             const float* dL_dweights, double out[3]) const {
        float d[3];
        out[0] = out[1] = out[2] = 0;
        if (!offset(i, cloud, r, j, d) || term.weight(d[0], d[1], d[2]) == 0) return;
        term.gradient(d[0], d[1], d[2], out);
        const double scale = point.backward(dL_dweights[(i * q + r) * near.k + j]);
        for (int axis = 0; axis < 3; ++axis) out[axis] *= scale;
    }

    /// What the neighbours share, by a whole warp.
    __device__ KernelPoint normaliser(int64_t i, int64_t cloud, int64_t r, const float* dL_dweights) const {
        double sum = 0, count = 0, gradient_sum = 0;
        for (int64_t j = threadIdx.x % kWarp; j < near.k; j += kWarp) {
            const float w = weight(i, cloud, r, j);
            sum += w;
            count += w != 0;
            if (dL_dweights != nullptr && w != 0)
                gradient_sum += static_cast<double>(w) * dL_dweights[(i * q + r) * near.k + j];
        }
        return {normalise, sum_over_lanes(sum, kWarp), sum_over_lanes(count, kWarp),
                sum_over_lanes(gradient_sum, kWarp)};
    }
};

/// A warp for each (query, kernel point), lanes over the neighbours: indices are read and weights written coalesced.
__global__ void weigh(KernelInterpolateInputs in, int64_t sums, float* __restrict__ weights) {
    const int64_t s = int64_t{blockIdx.x} * kKernelInterpolateWarps + threadIdx.x / kWarp;
    if (s >= sums) return;  // the whole warp
    const int64_t i = s / in.q, r = s - i * in.q, cloud = in.near.batch.cloud_of(i);
    const double inverse = in.normaliser(i, cloud, r, nullptr).inverse;
    for (int64_t j = threadIdx.x % kWarp; j < in.near.k; j += kWarp)
        weights[s * in.near.k + j] = static_cast<float>(in.weight(i, cloud, r, j) * inverse);
}

/// A block for each query: its warps find what the neighbours share at every kernel point, then a thread a neighbour
/// sums over the kernel points in order.
__global__ void offset_gradients(KernelInterpolateInputs in, const float* __restrict__ dL_dweights,
                                 float* __restrict__ dL_doffsets) {
    extern __shared__ double shared[];
    const int64_t i = blockIdx.x, k = in.near.k, cloud = in.near.batch.cloud_of(i);
    const int warps = static_cast<int>(blockDim.x) / kWarp;
    for (int64_t r = threadIdx.x / kWarp; r < in.q; r += warps) {
        const KernelPoint point = in.normaliser(i, cloud, r, dL_dweights);
        if (threadIdx.x % kWarp == 0) {
            shared[2 * r] = point.inverse;
            shared[2 * r + 1] = point.mean;
        }
    }
    __syncthreads();
    for (int64_t j = threadIdx.x; j < k; j += blockDim.x) {
        double sum[3] = {};
        for (int64_t r = 0; r < in.q; ++r) {
            KernelPoint point(KernelWeights::Normalise::none, 0, 0, 0);
            point.inverse = shared[2 * r];
            point.mean = shared[2 * r + 1];
            double slope[3];
            in.gradient(i, cloud, r, j, point, dL_dweights, slope);
            for (int axis = 0; axis < 3; ++axis) sum[axis] += slope[axis];
        }
        for (int axis = 0; axis < 3; ++axis) dL_doffsets[(i * k + j) * 3 + axis] = static_cast<float>(sum[axis]);
    }
}

/// A warp for each (64 queries, kernel point): partial sums in a fixed order.
__global__ void kernel_partial_sums(KernelInterpolateInputs in, int64_t m, int64_t chunks,
                                    const float* __restrict__ dL_dweights, double* __restrict__ partial) {
    const int64_t s = int64_t{blockIdx.x} * kKernelInterpolateWarps + threadIdx.x / kWarp;
    if (s >= chunks * in.q) return;  // the whole warp
    const int64_t chunk = s / in.q, r = s - chunk * in.q;
    const int64_t end = (chunk + 1) * kQueriesPerSum < m ? (chunk + 1) * kQueriesPerSum : m;
    double sum[3] = {};
    for (int64_t i = chunk * kQueriesPerSum; i < end; ++i) {
        const int64_t cloud = in.near.batch.cloud_of(i);
        const KernelPoint point = in.normaliser(i, cloud, r, dL_dweights);
        for (int64_t j = threadIdx.x % kWarp; j < in.near.k; j += kWarp) {
            double slope[3];
            in.gradient(i, cloud, r, j, point, dL_dweights, slope);
            for (int axis = 0; axis < 3; ++axis) sum[axis] += slope[axis];
        }
    }
    for (int axis = 0; axis < 3; ++axis) {
        const double total = sum_over_lanes(sum[axis], kWarp);
        if (threadIdx.x % kWarp == 0) partial[3 * s + axis] = total;
    }
}

/// A warp for each number of the result.
__global__ void kernel_sums(const double* __restrict__ partial, int64_t chunks, int64_t numbers,
                            float* __restrict__ dL_dkernel) {
    const int64_t s = int64_t{blockIdx.x} * kKernelInterpolateWarps + threadIdx.x / kWarp;
    if (s >= numbers) return;  // the whole warp
    double sum = 0;
    for (int64_t chunk = threadIdx.x % kWarp; chunk < chunks; chunk += kWarp) sum += partial[chunk * numbers + s];
    sum = sum_over_lanes(sum, kWarp);
    if (threadIdx.x % kWarp == 0) dL_dkernel[s] = static_cast<float>(-sum);
}

KernelInterpolateInputs inputs(const Clouds& points, const Clouds& queries, View<const float, 2> kernel,
                               const KernelWeights& options, const UploadedNeighbours& near) {
    return {points.rows.data(), queries.rows.data(), kernel.data(),       points.rows.stride(0), queries.rows.stride(0),
            kernel.size(0),     near.view(),         KernelTerm(options), options.normalise};
}

}  // namespace

void kernel_weights(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                    View<const float, 2> kernel, const KernelWeights& options, View<float, 3> weights,
                    Stream stream_of_call) {
    const CurrentDevice current(points.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, points.batch, stream);
    const int64_t sums = neighbours.rows() * kernel.size(0);
    weigh<<<blocks_for(sums, kKernelInterpolateWarps), kKernelInterpolateWarps * kWarp, 0, stream>>>(
        inputs(points, queries, kernel, options, near), sums, weights.data());
    STIPPLE_CHECK_LAUNCH(weigh);
}

void kernel_weights_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                             View<const float, 2> kernel, const KernelWeights& options,
                             View<const float, 3> dL_dweights, View<float, 3> dL_doffsets, View<float, 2> dL_dkernel,
                             Stream stream_of_call) {
    const CurrentDevice current(points.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, points.batch, stream);
    const KernelInterpolateInputs in = inputs(points, queries, kernel, options, near);
    const int64_t m = neighbours.rows(), q = kernel.size(0);
    if (m * neighbours.k() > 0) {
        offset_gradients<<<static_cast<unsigned>(m), 128, 2 * q * sizeof(double), stream>>>(in, dL_dweights.data(),
                                                                                            dL_doffsets.data());
        STIPPLE_CHECK_LAUNCH(offset_gradients);
    }
    if (dL_dkernel.elements() == 0) return;
    const int64_t chunks = (m + kQueriesPerSum - 1) / kQueriesPerSum;
    const Scratch<double> partial(chunks * q * 3, stream);
    if (chunks > 0) {
        kernel_partial_sums<<<blocks_for(chunks * q, kKernelInterpolateWarps), kKernelInterpolateWarps * kWarp, 0,
                              stream>>>(in, m, chunks, dL_dweights.data(), partial.get());
        STIPPLE_CHECK_LAUNCH(kernel_partial_sums);
    }
    kernel_sums<<<blocks_for(3 * q, kKernelInterpolateWarps), kKernelInterpolateWarps * kWarp, 0, stream>>>(
        partial.get(), chunks, 3 * q, dL_dkernel.data());
    STIPPLE_CHECK_LAUNCH(kernel_sums);
}

}  // namespace stipple::ops::cuda
