#include "stipple/tasks/upsample/relax.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/core/vec3.h"
#include "stipple/geometry/normals.h"
#include "stipple/ops/knn.h"

namespace stipple::tasks {
namespace {

constexpr int kIterations = 8;
constexpr int kSearchEvery = 4;      // iterations; neighbours hardly change in between
constexpr int64_t kNeighbours = 19;  // the point itself and the first two rings of a honeycomb
constexpr int64_t kRing = 6;         // neighbours whose mean distance is the local spacing
constexpr float kReach = 2;          // of the repulsion, in spacings
constexpr float kStep = 0.25f;       // in spacings, for the force of one neighbour at no distance
constexpr float kFarthest = 0.5f;    // from where a point was at the start, in spacings
constexpr int kNormalNeighbours = 13;
constexpr int64_t kGrain = 512;

Vec3f row(View<const float, 2> points, int64_t i) {
    const float* at = points.data() + 3 * i;
    return {at[0], at[1], at[2]};
}

}  // namespace

void relax(View<float, 2> points, int64_t movable) {
    const int64_t n = points.size(0), k = std::min(kNeighbours, n);
    if (n <= kRing) return;
    Array<float, 2> normals({n, 3}), start({movable, 3}), next({movable, 3});
    geometry::estimate_normals(points, normals.view(), {}, kNormalNeighbours);
    std::copy_n(points.data(), 3 * movable, start.data());
    Array<int32_t, 2> near({movable, k});
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        if (iteration % kSearchEvery == 0)
            ops::knn(ops::PointIndex(points), View<const float, 2>(points.data(), {movable, 3}), near.view(), {});
        parallel_for(movable, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const Vec3f own = row(points, i), normal = row(normals.view(), i);
                float distances[kNeighbours], ring = 0;
                Vec3f offsets[kNeighbours];
                int64_t found = 0;
                for (int64_t j = 0; j < k; ++j) {
                    const int32_t other = near.data()[i * k + j];
                    if (other < 0 || other == i) continue;
                    offsets[found] = own - row(points, other);
                    distances[found] = length(offsets[found]);
                    ring += found < kRing ? distances[found] : 0;
                    ++found;
                }
                ring /= static_cast<float>(std::max<int64_t>(1, std::min(found, kRing)));
                const float reach = kReach * ring;
                Vec3f push;
                for (int64_t j = 0; j < found; ++j)
                    if (distances[j] < reach && distances[j] > 0)
                        push = push + ((1 - distances[j] / reach) / distances[j]) * offsets[j];
                push = push - dot(push, normal) * normal;
                const Vec3f from = row(start.view(), i);
                Vec3f moved = own + kStep * ring * push - from;
                const float far = length(moved);
                if (far > kFarthest * ring) moved = (kFarthest * ring / far) * moved;
                const Vec3f to = from + moved;
                float* at = next.data() + 3 * i;
                at[0] = to.x, at[1] = to.y, at[2] = to.z;
            }
        });
        std::copy_n(next.data(), 3 * movable, points.data());
    }
}

}  // namespace stipple::tasks
