#pragma once
// The CUDA launchers behind PointIndex, knn, radius_search, ball_query and nearest_pairs. Arguments are checked
// already; everything is launched on the stream of the index's (or the points') device. Empty views are outputs not
// wanted.

#include "stipple/ops/radius_search.h"

namespace stipple::ops::cuda {

std::shared_ptr<const PointHierarchy> build(const Clouds& points, Stream stream);

void knn(const PointIndex& index, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq,
         Stream stream);

/// knn without an index, of every query against every point, k at most 32: for clouds so small that an index would take
/// longer. indices, distances: [m, k], or null where they are not wanted.
void nearest_of_few(const Clouds& points, const Clouds& queries, int32_t* indices, float* distances, int32_t k,
                    Stream stream);

void radius_count(const PointIndex& index, const Clouds& queries, float radius, View<int32_t, 1> counts, Stream stream);
int64_t radius_offsets(View<const int32_t, 1> counts, View<int64_t, 1> offsets, Stream stream);
void radius_search(const PointIndex& index, const Clouds& queries, float radius, View<const int64_t, 1> offsets,
                   View<int32_t, 1> indices, View<float, 1> distances_sq, NeighbourOrder order, Stream stream);

void ball_query(const PointIndex& index, const Clouds& queries, float radius, View<int32_t, 2> indices,
                View<int32_t, 1> counts, NeighbourOrder order, Stream stream);

void nearest_pairs(const Clouds& a, const Clouds& b, View<int32_t, 1> b_of_a, View<float, 1> sq_of_a,
                   View<int32_t, 1> a_of_b, View<float, 1> sq_of_b, Stream stream);

}  // namespace stipple::ops::cuda
