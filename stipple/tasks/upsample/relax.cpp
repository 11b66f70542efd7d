#include "stipple/tasks/upsample/relax.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/core/vec3.h"
#include "stipple/geometry/normals.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/frame.h"

namespace stipple::tasks {
namespace {

constexpr int kIterations = 8;
constexpr int kSearchEvery = 4;           // iterations; neighbours hardly change in between
constexpr int64_t kRelaxNeighbours = 19;  // the point itself and the first two rings of a honeycomb
constexpr int64_t kRing = 6;              // neighbours whose mean distance is the local spacing
constexpr int kSmoothings = 8;            // of the spacings; 0 and 24 were no better on held-out meshes
constexpr float kReach = 2;               // of the repulsion, in spacings
constexpr float kStep = 0.25f;            // in spacings, for the force of one neighbour at no distance
constexpr float kFarthest = 0.5f;         // from where a point was at the start, in spacings
constexpr int kNormalNeighbours = 13;
constexpr int64_t kRelaxGrain = 512;

/// Mean distance of each movable point to its nearest six, averaged again and again over its neighbours: what is denser
/// than its surroundings then feels more pressure than they do, and spreads into them.
std::vector<float> smooth_spacings(View<const float, 2> points, View<const int32_t, 2> near) {
    const int64_t movable = near.size(0), k = near.size(1);
    std::vector<float> spacings(static_cast<size_t>(movable)), next(spacings.size());
    parallel_for(movable, kRelaxGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float sum = 0;
            int64_t found = 0;
            for (int64_t j = 0; j < k && found < kRing; ++j) {
                const int32_t other = near(i, j);
                if (other < 0 || other == i) continue;
                sum += length(row(points, i) - row(points, other));
                ++found;
            }
            spacings[static_cast<size_t>(i)] = sum / static_cast<float>(std::max<int64_t>(1, found));
        }
    });
    for (int round = 0; round < kSmoothings; ++round) {
        parallel_for(movable, kRelaxGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                float sum = 0;
                int64_t found = 0;
                for (int64_t j = 0; j < k; ++j) {
                    const int32_t other = near(i, j);
                    if (other < 0 || other >= movable) continue;
                    sum += spacings[static_cast<size_t>(other)];
                    ++found;
                }
                next[static_cast<size_t>(i)] =
                    found > 0 ? sum / static_cast<float>(found) : spacings[static_cast<size_t>(i)];
            }
        });
        std::swap(spacings, next);
    }
    return spacings;
}

}  // namespace

void relax(View<float, 2> points, int64_t movable) {
    const int64_t n = points.size(0), k = std::min(kRelaxNeighbours, n);
    if (n <= kRing) return;
    Array<float, 2> normals({n, 3}), start({movable, 3}), next({movable, 3});
    geometry::estimate_normals(points, normals.view(), {}, kNormalNeighbours);
    std::copy_n(points.data(), 3 * movable, start.data());
    Array<int32_t, 2> near({movable, k});
    std::vector<float> spacings(static_cast<size_t>(movable));
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        if (iteration % kSearchEvery == 0) {
            ops::knn(ops::PointIndex(points), View<const float, 2>(points.data(), {movable, 3}), near.view(), {});
            spacings = smooth_spacings(points, near.view());
        }
        parallel_for(movable, kRelaxGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const Vec3f own = row(points, i), normal = row(normals.view(), i);
                const float spacing = spacings[static_cast<size_t>(i)], reach = kReach * spacing;
                Vec3f push;
                for (int64_t j = 0; j < k; ++j) {
                    const int32_t other = near.data()[i * k + j];
                    if (other < 0 || other == i) continue;
                    const Vec3f offset = own - row(points, other);
                    const float distance = length(offset);
                    if (distance < reach && distance > 0) push = push + ((1 - distance / reach) / distance) * offset;
                }
                push = push - dot(push, normal) * normal;
                const Vec3f from = row(start.view(), i);
                Vec3f moved = own + kStep * spacing * push - from;
                const float far = length(moved);
                if (far > kFarthest * spacing) moved = (kFarthest * spacing / far) * moved;
                const Vec3f to = from + moved;
                float* at = next.data() + 3 * i;
                at[0] = to.x, at[1] = to.y, at[2] = to.z;
            }
        });
        std::copy_n(next.data(), 3 * movable, points.data());
    }
}

}  // namespace stipple::tasks
