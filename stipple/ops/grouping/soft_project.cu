#include <cub/block/block_reduce.cuh>

#include "stipple/ops/grouping/grouping_cuda.h"
#include "stipple/ops/grouping/soft_project_row.h"
#include "stipple/ops/soft_project.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kSoftProjectThreads = kQueriesPerChunk;

struct SoftProjectInputs {
    const float *points, *queries, *temperature;
    int64_t point_stride, query_stride;
    DeviceNeighbours near;
    float min_sigma;

    __device__ SoftRow row(int64_t i) const {
        const int64_t cloud = near.batch.cloud_of(i), first = near.rows.begin(cloud);
        return {points + first * point_stride,
                point_stride,
                near.rows.end(cloud) - first,
                queries + i * query_stride,
                near.indices + i * near.k,
                near.k,
                SoftSigma(*temperature, min_sigma).value};
    }
};

/// A thread a query: k is small and its points are scattered anyway.
__global__ void __launch_bounds__(kSoftProjectThreads)
    project(SoftProjectInputs in, int64_t m, float* __restrict__ weights, float* __restrict__ projected) {
    const int64_t i = int64_t{blockIdx.x} * kSoftProjectThreads + threadIdx.x;
    if (i < m) in.row(i).forward(weights + i * in.near.k, projected + 3 * i);
}

/// A thread a query; each block leaves its part of dL/dsigma, summed in a fixed order.
__global__ void __launch_bounds__(kSoftProjectThreads)
    project_backward(SoftProjectInputs in, int64_t m, const float* __restrict__ dL_dprojected,
                     const float* __restrict__ dL_dweights, float* __restrict__ dL_dqueries,
                     double* __restrict__ partial) {
    using Reduce = cub::BlockReduce<double, kSoftProjectThreads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    __shared__ typename Reduce::TempStorage shared;
    const int64_t i = int64_t{blockIdx.x} * kSoftProjectThreads + threadIdx.x;
    double dL_dsigma = 0;
    if (i < m)
        dL_dsigma =
            in.row(i).backward(dL_dprojected == nullptr ? nullptr : dL_dprojected + 3 * i,
                               dL_dweights == nullptr ? nullptr : dL_dweights + i * in.near.k, dL_dqueries + 3 * i);
    const double sum = Reduce(shared).Sum(dL_dsigma);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// One block adds the parts up, in a fixed order.
__global__ void __launch_bounds__(kSoftProjectThreads)
    sum_parts(const double* __restrict__ partial, int64_t parts, const float* __restrict__ temperature, float min_sigma,
              float* __restrict__ dL_dtemperature) {
    using Reduce = cub::BlockReduce<double, kSoftProjectThreads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    __shared__ typename Reduce::TempStorage shared;
    double sum = 0;
    for (int64_t part = threadIdx.x; part < parts; part += kSoftProjectThreads) sum += partial[part];
    sum = Reduce(shared).Sum(sum);
    if (threadIdx.x != 0) return;
    const double slope = SoftSigma(*temperature, min_sigma).slope;
    *dL_dtemperature = static_cast<float>(slope == 0 ? 0 : sum * slope);
}

SoftProjectInputs inputs(const Clouds& points, const Clouds& queries, View<const float, 1> temperature, float min_sigma,
                         const UploadedNeighbours& near) {
    return {points.rows.data(),     queries.rows.data(), temperature.data(), points.rows.stride(0),
            queries.rows.stride(0), near.view(),         min_sigma};
}

}  // namespace

void soft_project(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                  View<const float, 1> temperature, float min_sigma, View<float, 2> weights, View<float, 2> projected,
                  Stream stream_of_call) {
    const CurrentDevice current(points.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, points.batch, stream);
    const int64_t m = neighbours.rows();
    project<<<blocks_for(m, kSoftProjectThreads), kSoftProjectThreads, 0, stream>>>(
        inputs(points, queries, temperature, min_sigma, near), m, weights.data(), projected.data());
    STIPPLE_CHECK_LAUNCH(project);
}

void soft_project_backward(const Clouds& points, const Clouds& queries, const Neighbours& neighbours,
                           View<const float, 1> temperature, float min_sigma, const float* dL_dprojected,
                           const float* dL_dweights, View<float, 2> dL_dqueries, View<float, 1> dL_dtemperature,
                           Stream stream_of_call) {
    const CurrentDevice current(points.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedNeighbours near(neighbours, points.batch, stream);
    const int64_t m = neighbours.rows(), parts = blocks_for(m, kSoftProjectThreads);
    const Scratch<double> partial(parts, stream);
    if (m > 0) {
        project_backward<<<static_cast<unsigned>(parts), kSoftProjectThreads, 0, stream>>>(
            inputs(points, queries, temperature, min_sigma, near), m, dL_dprojected, dL_dweights, dL_dqueries.data(),
            partial.get());
        STIPPLE_CHECK_LAUNCH(project_backward);
    }
    sum_parts<<<1, kSoftProjectThreads, 0, stream>>>(partial.get(), parts, temperature.data(), min_sigma,
                                                     dL_dtemperature.data());
    STIPPLE_CHECK_LAUNCH(sum_parts);
}

}  // namespace stipple::ops::cuda
