#include "stipple/ops/common/cuda_launch.h"
#include "stipple/tasks/upsample/relax.h"
#include "stipple/tasks/upsample/relax_step.h"

namespace stipple::tasks::cuda {
namespace {

constexpr int kRelaxThreads = 128;

__device__ int64_t relaxed_point() {
    return int64_t{blockIdx.x} * kRelaxThreads + threadIdx.x;
}

__global__ void measure_spacings(const float* points, const int32_t* near, int64_t movable, int64_t k,
                                 float* spacings) {
    const int64_t i = relaxed_point();
    if (i < movable) spacings[i] = ring_spacing(points, i, near + i * k, k);
}

__global__ void average_spacings(const float* before, const int32_t* near, int64_t movable, int64_t k,
                                 float* spacings) {
    const int64_t i = relaxed_point();
    if (i < movable) spacings[i] = mean_spacing_around(before, movable, i, near + i * k, k);
}

__global__ void push_points(const float* points, const float* start, const float* normals, const float* spacings,
                            const int32_t* near, int64_t movable, int64_t k, float* next) {
    const int64_t i = relaxed_point();
    if (i >= movable) return;
    const Vec3f to = pushed(points, relax_row(start, i), relax_row(normals, i), spacings[i], i, near + i * k, k);
    next[3 * i] = to.x, next[3 * i + 1] = to.y, next[3 * i + 2] = to.z;
}

}  // namespace

void smooth_spacings(View<const float, 2> points, View<const int32_t, 2> near, int rounds, View<float, 1> spacings) {
    const ops::cuda::CurrentDevice current(points.device());
    const int64_t movable = near.size(0), k = near.size(1);
    const unsigned blocks = ops::cuda::blocks_for(movable, kRelaxThreads);
    const ops::cuda::Scratch<float> other(movable, nullptr);
    // Rounds write to one array and the other in turn, and the last one to `spacings`.
    float *now = rounds % 2 == 0 ? spacings.data() : other.get(),
          *next = rounds % 2 == 0 ? other.get() : spacings.data();
    measure_spacings<<<blocks, kRelaxThreads>>>(points.data(), near.data(), movable, k, now);
    STIPPLE_CHECK_LAUNCH(measure_spacings);
    for (int round = 0; round < rounds; ++round) {
        average_spacings<<<blocks, kRelaxThreads>>>(now, near.data(), movable, k, next);
        STIPPLE_CHECK_LAUNCH(average_spacings);
        std::swap(now, next);
    }
}

void push(View<const float, 2> points, View<const float, 2> start, View<const float, 2> normals,
          View<const float, 1> spacings, View<const int32_t, 2> near, View<float, 2> next) {
    const ops::cuda::CurrentDevice current(points.device());
    const int64_t movable = near.size(0), k = near.size(1);
    push_points<<<ops::cuda::blocks_for(movable, kRelaxThreads), kRelaxThreads>>>(
        points.data(), start.data(), normals.data(), spacings.data(), near.data(), movable, k, next.data());
    STIPPLE_CHECK_LAUNCH(push_points);
}

}  // namespace stipple::tasks::cuda
