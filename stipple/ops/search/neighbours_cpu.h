#pragma once
// The CPU searches behind knn, radius_search, ball_query and nearest_pairs. Arguments are checked already; empty views
// are outputs not wanted.

#include "stipple/ops/radius_search.h"
#include "stipple/ops/search/point_tree.h"

namespace stipple::ops::cpu {

constexpr int kMostNeighbours = 128;

void knn(const PointTree& tree, const Clouds& queries, View<int32_t, 2> indices, View<float, 2> distances_sq);

/// knn among the points whose squared distance, in bits, is at most `reach`. Rows of the batch that are not in the
/// leaves of the queries find nothing.
void nearest_within(const PointTree& tree, const std::vector<const Leaves*>& queries, const Batch& batch, int32_t reach,
                    View<int32_t, 2> indices, View<float, 2> distances_sq);

void radius_count(const PointTree& tree, const Clouds& queries, float radius, View<int32_t, 1> counts);
void radius_search(const PointTree& tree, const Clouds& queries, float radius, View<const int64_t, 1> offsets,
                   View<int32_t, 1> indices, View<float, 1> distances_sq, NeighbourOrder order);

void ball_query(const PointTree& tree, const Clouds& queries, float radius, View<int32_t, 2> indices,
                View<int32_t, 1> counts, NeighbourOrder order);

void nearest_pairs(const Clouds& a, const Clouds& b, View<int32_t, 1> b_of_a, View<float, 1> sq_of_a,
                   View<int32_t, 1> a_of_b, View<float, 1> sq_of_b);

}  // namespace stipple::ops::cpu
