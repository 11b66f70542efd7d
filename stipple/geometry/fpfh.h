#pragma once

#include "stipple/core/array.h"

namespace stipple::geometry {

/// Numbers of a descriptor: three histograms of eleven bins.
inline constexpr int64_t kFpfhSize = 33;

/// Fast point feature histograms [Rusu et al. 2009]: how the normals around each point turn.
///
/// points   [n, 3] float32 on the CPU
/// normals  [n, 3] of unit length, signs consistent between neighbours; (0, 0, 0) for none
/// radius   of the neighbourhood, above 0; five distances between points is usual
/// returns  [n, 33]: of each pair of a point with a neighbour the numbers alpha, phi and theta of the paper in eleven
/// bins
///          each (alpha and phi in [-1, 1], theta in [-pi, pi]), the frame at the point whose normal lies nearer to the
///          line between them; the mean of the neighbours' own histograms, weighted by 1 / distance, is added. Each of
///          the three sums to 1
///
/// A rigid motion of points and normals changes nothing but rounding. Turning all normals round reverses the bins of
/// phi and theta and leaves alpha: fpfh_reversed(). Points without a normal or without a neighbour that has one get
/// zeros and are nobody's neighbours, as are non-finite points. Deterministic for any number of threads. Throws
/// Error{bad_argument} for wrong shapes, a radius not above 0 and arrays on a GPU. O(n k) for k points in a ball.
Array<float, 2> fpfh(View<const float, 2> points, View<const float, 2> normals, double radius);

/// The descriptors of the same points with all normals turned round.
Array<float, 2> fpfh_reversed(View<const float, 2> descriptors);

}  // namespace stipple::geometry
