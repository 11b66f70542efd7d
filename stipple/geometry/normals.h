#pragma once

#include <array>
#include <limits>

#include "stipple/core/view.h"

namespace stipple::geometry {

/// The normal of every point [n, 3]: the direction in which its nearest neighbours, itself among them, vary least.
///
/// normals     [n, 3] of unit length. The sign is arbitrary: the largest component is positive
/// curvatures  [n] smallest eigenvalue of the neighbours' covariance over the sum of the three, 0 flat to 1/3; an empty
///             view when not wanted
/// k           the k nearest points, 3 to 128; a cloud of fewer points uses all of them. Ties as in ops::knn
/// radius      of those k only the ones within it (squared distance <= radius * radius, as ops::radius_count)
///
/// Neighbours that do not span a plane (fewer than three, or on a line: the second spread below 1e-6 of the first) give
/// (0, 0, 0) and NaN, and so do non-finite points, which are nobody's neighbours. Differences are exact in float64, so
/// that a cloud far from the origin loses nothing but what its float32 coordinates lost. CPU and CUDA give the same
/// bits, for any number of threads. Throws Error{bad_argument} for wrong shapes, k or radius (not above 0), and mixed
/// devices. About O(n log n + n k) time; memory for 2^25 neighbours, however many points.
void estimate_normals(View<const float, 2> points, View<float, 2> normals, View<float, 1> curvatures, int k = 16,
                      float radius = std::numeric_limits<float>::infinity(), Stream stream = {});

/// Turns normals so that they point towards `viewpoint`, given relative to the cloud's origin. Those at right angles to
/// the view, of no length and of non-finite points stay. CPU and CUDA agree exactly. Throws Error{bad_argument} for
/// wrong shapes, a non-finite viewpoint and mixed devices. O(n).
void orient_towards(View<const float, 2> points, View<float, 2> normals, const std::array<double, 3>& viewpoint,
                    Stream stream = {});

/// Turns normals so that neighbours agree, and outwards. A spanning tree over the k-nearest-neighbour graph [Hoppe et
/// al. 1992] in which clusters join by the sum of all votes between them instead of by one edge, and in which an edge
/// votes by reflection across its middle [Xie et al. 2003] with the cloud's noise taken off, so that folds and thin
/// sheets turn the right way.
///
/// Each connected part of the graph is oriented on its own: outwards, in the sense that a closed surface gets positive
/// volume; a flat part gets the largest component of its mean normal positive. Normals of no length or that are not
/// finite, and those of non-finite points, stay and take no part. k as in estimate_normals. Deterministic for any
/// number of threads. CPU. Throws Error{bad_argument} for wrong shapes, k and arrays on a GPU. O(n k log n).
///
/// Right for 99.7 to 100 % of the normals of 100,000 points on most closed shapes. The two sides of a sheet thinner
/// than about two distances between points are a matter of chance.
void orient_consistently(View<const float, 2> points, View<float, 2> normals, int k = 16);

}  // namespace stipple::geometry
