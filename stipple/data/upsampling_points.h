#pragma once
// What an upsampler is given besides a cloud: the unit that it measures in, in training and in use, and points near the
// surface that it learns to move onto it.

#include <cstdint>
#include <span>

#include "stipple/core/view.h"

namespace stipple::data {

/// Neighbours of a point, itself included, that candidates are made of: columns of what knn is asked for.
inline constexpr int64_t kQueryNeighbours = 11;

/// The square root of the area that a point of a surface stands for, in the unit of the points.
///
/// points  [n, 3], rows of adjacent numbers, CPU
///
/// The median, over at most 4096 points that are spread evenly over the rows, of sqrt(pi / 8) times the distance to the
/// 8th nearest other point: a disc of that radius has about 8 points. Where there are fewer others, of the farthest,
/// with their number instead of 8. Points that coincide with all of these neighbours do not count, and neither do
/// non-finite ones; 0 where none counts: all coincide, or n < 2. Throws Error{bad_argument} for other shapes and
/// devices. O(n log n).
float mean_spacing(View<const float, 2> points);

/// Candidates around points: each is a random point of the triangle of a point and two different neighbours of it, or
/// of its mirror image in the point, so that rims, corners and holes are reached that no triangle covers.
///
/// points      [n, 3], rows of adjacent numbers, CPU
/// neighbours  [n, k] from knn among the points, nearest first; column 0, the point itself as a rule, is passed over.
///             k = kQueryNeighbours
/// which       the points, by their rows; in any order, also twice
/// out         [which.size() * per_point, 3], those of which[0] first; written
///
/// Uniform over the pairs of columns, both triangles and their points. Query j of point i is a function of (points,
/// neighbours, seed, i, j) alone, whatever else is asked for. A neighbour that is missing (-1), or for which there is
/// no column, is the point itself. Throws Error{bad_argument} for other shapes and devices, per_point outside 0 .. 2^31
/// - 1 and rows out of range. O(which.size() * per_point).
void neighbour_queries(View<const float, 2> points, View<const int32_t, 2> neighbours, std::span<const int32_t> which,
                       int64_t per_point, uint64_t seed, float* out);

}  // namespace stipple::data
