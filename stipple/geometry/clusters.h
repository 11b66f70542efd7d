#pragma once

#include "stipple/core/array.h"

namespace stipple::geometry {

struct DensityClusters {
    Array<int32_t, 1> labels;  // [n] the cluster of each point; -1: noise
    Array<uint8_t, 1> core;    // [n] 1 for core points
    int64_t count = 0;
};

/// DBSCAN [Ester et al. 1996]: clusters of points that lie dense.
///
/// points      [n, 3], CPU
/// radius      how far neighbours are, at most: squared distance <= radius^2, in float64
/// min_points  a core point has so many neighbours, itself among them (as scikit-learn and Open3D count)
///
/// Core points that are neighbours are in one cluster. Clusters are numbered by their first core point. A point that is
/// not core but the neighbour of one belongs to the lowest cluster among its neighbours'; one that is neither is noise:
/// what Open3D's cluster_dbscan gives, but for points at exactly the radius. Non-finite points are noise.
///
/// The same for any number of threads. Throws Error{bad_argument} for other shapes, min_points below 1, and a radius
/// that is not above 0 or below 2^-36 of the largest coordinate. About O(n): points are sorted into cubes within which
/// all are neighbours, and cubes are joined, not points; dense clouds cost no more than thin ones.
DensityClusters density_clusters(View<const float, 2> points, double radius, int64_t min_points);

}  // namespace stipple::geometry
