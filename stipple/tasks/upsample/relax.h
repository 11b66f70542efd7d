#pragma once
// Even spacing of points on a surface.

#include <cstdint>

#include "stipple/core/view.h"

namespace stipple::tasks {

/// Moves the first `movable` of the points [n, 3], on CPU or CUDA, along the surface, away from their neighbours, so
/// that they lie about as evenly as a honeycomb's cells: of points that elimination has chosen on a sphere, the mean
/// squared distance of the surface to the nearest of them falls by a fifth. The others stay.
///
/// A point is pushed by those within two spacings, its mean distance to the nearest six averaged over its surroundings:
/// points spread from where they are denser than around. It moves in the plane of its neighbours at the start, by half
/// a spacing at most. Without a plane (fewer than three neighbours, or all on a line) it moves freely. The same for any
/// number of threads, and on both devices. Up to six points stay as they are. O(n log n).
void relax(View<float, 2> points, int64_t movable);

/// Steps of it on a GPU. `near` [movable, k] are neighbours, `spacings` those of the movable points.
namespace cuda {
/// Measures the spacings and averages them over neighbours, `rounds` times.
void smooth_spacings(View<const float, 2> points, View<const int32_t, 2> near, int rounds, View<float, 1> spacings);
/// Writes to `next` [movable, 3] where the points go.
void push(View<const float, 2> points, View<const float, 2> start, View<const float, 2> normals,
          View<const float, 1> spacings, View<const int32_t, 2> near, View<float, 2> next);
}  // namespace cuda

}  // namespace stipple::tasks
