#pragma once

#include "stipple/ops/point_index.h"

namespace stipple::ops {

/// The k nearest points of the index for every query, nearest first.
///
/// queries       [m, c], as many clouds as the index; cloud i searches cloud i. Same device as the index
/// indices       [m, k] int32, positions in the index's cloud
/// distances_sq  [m, k] float32 squared distances, or an empty view when they are not wanted
/// k             columns of `indices`, 1..128
///
/// Distances are (dx*dx + dy*dy) + dz*dz (in c dimensions: summed in order) without contraction; ties go to the lowest
/// index, so CPU and CUDA agree exactly. A query finds itself when it is in the index. Missing neighbours are index -1
/// at distance +infinity, after the found ones: non-finite points are never found, non-finite queries find nothing, and
/// a point whose squared distance overflows float32 (beyond about 1.8e19) is not found.
/// Throws Error{bad_argument} when k is out of range or larger than a cloud that has queries, and for wrong shapes or
/// mixed devices. About O(m log n + m k) time; queries are fastest when they are the indexed points themselves.
void knn(const PointIndex& index, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq,
         Stream stream = {});

/// The same among points that are searched once: as by an index of them, and equal to it. Where clouds are small, CUDA
/// compares every query with every point instead, O(m n) work in one launch: building an index would take longer.
/// Points [n, c] as a PointIndex takes them.
void knn(const Clouds& points, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq,
         Stream stream = {});

}  // namespace stipple::ops
