#include "stipple/geometry/cloud/normals_cuda.h"
#include "stipple/geometry/cloud/normals_turn.h"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::geometry::cuda {
namespace {

constexpr int kNormalsThreads = 128;

/// A thread for each point, its neighbours in their order: the sums have the same bits as on the CPU.
__global__ void fit_normals(const float* points, int64_t stride, int64_t first, int64_t rows, const int32_t* neighbours,
                            int k, float radius_sq, float* normals, float* curvatures) {
    const int64_t i = int64_t{blockIdx.x} * kNormalsThreads + threadIdx.x;
    if (i >= rows) return;
    const int64_t row = first + i;
    write_normal(normal_of(points, stride, points + row * stride, neighbours + i * k, k, radius_sq), normals + 3 * row,
                 curvatures ? curvatures + row : nullptr);
}

struct Place {
    double at[3];
};

__global__ void turn_normals(const float* points, int64_t stride, int64_t rows, Place viewpoint, float* normals) {
    const int64_t i = int64_t{blockIdx.x} * kNormalsThreads + threadIdx.x;
    if (i < rows) turn_towards(points + i * stride, viewpoint.at, normals + 3 * i);
}

}  // namespace

void normals_of_rows(View<const float, 2> points, int64_t first, View<const int32_t, 2> neighbours, float radius_sq,
                     View<float, 2> normals, View<float, 1> curvatures, Stream stream) {
    const ops::cuda::CurrentDevice current(points.device());
    const int64_t rows = neighbours.size(0);
    fit_normals<<<ops::cuda::blocks_for(rows, kNormalsThreads), kNormalsThreads, 0, ops::cuda::raw(stream)>>>(
        points.data(), points.stride(0), first, rows, neighbours.data(), static_cast<int>(neighbours.size(1)),
        radius_sq, normals.data(), curvatures.elements() > 0 ? curvatures.data() : nullptr);
    STIPPLE_CHECK_LAUNCH(fit_normals);
}

void orient_towards(View<const float, 2> points, View<float, 2> normals, const std::array<double, 3>& viewpoint,
                    Stream stream) {
    const ops::cuda::CurrentDevice current(points.device());
    const int64_t rows = points.size(0);
    turn_normals<<<ops::cuda::blocks_for(rows, kNormalsThreads), kNormalsThreads, 0, ops::cuda::raw(stream)>>>(
        points.data(), points.stride(0), rows, {viewpoint[0], viewpoint[1], viewpoint[2]}, normals.data());
    STIPPLE_CHECK_LAUNCH(turn_normals);
}

}  // namespace stipple::geometry::cuda
