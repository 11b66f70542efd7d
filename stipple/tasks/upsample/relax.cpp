#include "stipple/tasks/upsample/relax.h"

#include <algorithm>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/normals.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/relax_step.h"

namespace stipple::tasks {
namespace {

constexpr int kIterations = 8;
constexpr int kSearchEvery = 4;           // iterations; neighbours hardly change in between
constexpr int64_t kRelaxNeighbours = 19;  // the point itself and the first two rings of a honeycomb
constexpr int kSmoothings = 8;            // of the spacings; 0 and 24 were no better on held-out meshes
constexpr int kNormalNeighbours = 13;
constexpr int64_t kRelaxGrain = 512;

template <class Body>
void for_points(int64_t n, const Body& body) {
    parallel_for(n, kRelaxGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) body(i);
    });
}

/// Mean distance of each movable point to its nearest six, averaged again and again over its neighbours: what is denser
/// than its surroundings then feels more pressure than they do, and spreads into them.
void smooth_spacings(View<const float, 2> points, View<const int32_t, 2> near, int rounds, View<float, 1> spacings) {
    const int64_t movable = near.size(0), k = near.size(1);
    for_points(movable, [&](int64_t i) { spacings(i) = ring_spacing(points.data(), i, near.data() + i * k, k); });
    std::vector<float> before(static_cast<size_t>(movable));
    for (int round = 0; round < rounds; ++round) {
        std::copy_n(spacings.data(), movable, before.data());
        for_points(movable, [&](int64_t i) {
            spacings(i) = mean_spacing_around(before.data(), movable, i, near.data() + i * k, k);
        });
    }
}

void push(View<const float, 2> points, View<const float, 2> start, View<const float, 2> normals,
          View<const float, 1> spacings, View<const int32_t, 2> near, View<float, 2> next) {
    const int64_t k = near.size(1);
    for_points(near.size(0), [&](int64_t i) {
        const Vec3f to = pushed(points.data(), relax_row(start.data(), i), relax_row(normals.data(), i), spacings(i), i,
                                near.data() + i * k, k);
        for (int c = 0; c < 3; ++c) next(i, c) = to[c];
    });
}

}  // namespace

void relax(View<float, 2> points, int64_t movable) {
    const int64_t n = points.size(0), k = std::min(kRelaxNeighbours, n);
    if (n <= kRing || movable == 0) return;
    const Device device = points.device();
    const bool is_on_cpu = device.type == DeviceType::cpu;
    Array<float, 2> normals({n, 3}, device), start({movable, 3}, device), next({movable, 3}, device);
    Array<float, 1> spacings({movable}, device);
    Array<int32_t, 2> near({movable, k}, device);
    const auto copy = [&](const float* from, float* to) {
        copy_bytes(to, device, from, device, 3 * movable * static_cast<int64_t>(sizeof(float)));
    };
    geometry::estimate_normals(points, normals.view(), {}, kNormalNeighbours);
    copy(points.data(), start.data());
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        if (iteration % kSearchEvery == 0) {
            ops::knn(ops::PointIndex(View<const float, 2>(points)), View<const float, 2>(points).slice(0, movable),
                     near.view(), {});
            if (is_on_cpu)
                smooth_spacings(points, near.view(), kSmoothings, spacings.view());
            else
                STIPPLE_CUDA_CALL(cuda::smooth_spacings, points, near.view(), kSmoothings, spacings.view());
        }
        if (is_on_cpu)
            push(points, start.view(), normals.view(), spacings.view(), near.view(), next.view());
        else
            STIPPLE_CUDA_CALL(cuda::push, points, start.view(), normals.view(), spacings.view(), near.view(),
                              next.view());
        copy(next.data(), points.data());
    }
}

}  // namespace stipple::tasks
