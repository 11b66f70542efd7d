#pragma once
// All points within a radius, in two calls, because the size of the answer is not known before:
//
//   radius_count(index, queries, radius, counts);               counts [m]
//   const int64_t total = radius_offsets(counts, offsets);      offsets [m + 1]
//   radius_search(index, queries, radius, offsets, indices, distances_sq);   both [total]

#include "stipple/ops/point_index.h"

namespace stipple::ops {

enum class NeighbourOrder {
    nearest,  // nearest first, ties to the lowest index
    index,    // ascending index
};

/// How many points of the index lie within the radius of every query: squared distance <= radius * radius, both
/// rounded to float32. Distances as in knn.
///
/// queries  [m, c], as many clouds as the index; cloud i searches cloud i. Same device as the index
/// radius   >= 0; 0 finds exact duplicates, +infinity every finite point. Throws Error{bad_argument} for negative, NaN
/// counts   [m] int32
///
/// Non-finite points are never found, non-finite queries find nothing, and a point whose squared distance overflows
/// float32 is found at no radius. Throws Error{bad_argument} for wrong shapes and mixed devices.
void radius_count(const PointIndex& index, const Clouds& queries, float radius, View<int32_t, 1> counts,
                  Stream stream = {});

/// The running sum of counts [m] from 0: offsets [m + 1], same device. Returns the last, the size of radius_search's
/// outputs; for that it waits for the device.
int64_t radius_offsets(View<const int32_t, 1> counts, View<int64_t, 1> offsets, Stream stream = {});

/// The points within the radius, query after query.
///
/// queries, radius  as in the radius_count before
/// offsets          [m + 1] int64 from radius_offsets: results of query i are at offsets[i] .. offsets[i + 1]
/// indices          [total] int32, positions in the index's cloud
/// distances_sq     [total] float32, or an empty view when they are not wanted
///
/// Offsets that are not those of this search throw Error{bad_argument} on the CPU, where the outputs are then
/// unspecified; on CUDA they give unspecified results, and nothing is written outside of the outputs.
/// Otherwise throws as radius_count. About O(m log n + total log(total / m)) time.
void radius_search(const PointIndex& index, const Clouds& queries, float radius, View<const int64_t, 1> offsets,
                   View<int32_t, 1> indices, View<float, 1> distances_sq,
                   NeighbourOrder order = NeighbourOrder::nearest, Stream stream = {});

}  // namespace stipple::ops
