#pragma once

#include "stipple/ops/radius_search.h"

namespace stipple::ops {

/// Groups of a fixed number of points within a radius [Qi et al. 2017, PointNet++].
///
/// queries  [m, c], as many clouds as the index; cloud i searches cloud i. Same device as the index
/// radius   >= 0; a point is in the ball when squared distance < radius * radius (strictly, as PointNet++ does; both
///          rounded to float32), so that radius 0 finds nothing. +infinity finds every point
/// indices  [m, s] int32, positions in the index's cloud, s >= 1
/// counts   [m] int32, distinct points of a group, at most s; or an empty view when they are not wanted
/// order    index: the s lowest indices in the ball, ascending, as PointNet++ does.
///          nearest: the s nearest points, nearest first, ties to the lowest index; s <= 128
///
/// A group of fewer than s points repeats its first one. A query that finds nothing has count 0 and index -1 throughout
/// (PointNet++ gives index 0 there, which is silently wrong). Distances, non-finite points and queries as in knn.
/// Throws Error{bad_argument} for a negative or NaN radius, s out of range, wrong shapes and mixed devices.
/// Time as radius_count (index) or knn (nearest).
void ball_query(const PointIndex& index, const Clouds& queries, float radius, View<int32_t, 2> indices,
                View<int32_t, 1> counts, NeighbourOrder order = NeighbourOrder::index, Stream stream = {});

}  // namespace stipple::ops
