#pragma once

#include <span>

#include "stipple/ops/clouds.h"

namespace stipple::ops {

/// SampleNet's simplification terms [Lang et al. 2020] of the beginnings of a sample: how far the first s points of Q
/// are from the cloud P, and P from them, for all sizes s in one pass. Distances are squared.
///
/// points   P, [n, 3], no cloud empty
/// queries  Q, [clouds * m, 3], dense, on the same device
/// sizes    ascending, 1..m, at most 16 of them
/// nearest  [clouds * m] int32: the point of P that is nearest to each query (knn); -1: none
/// owners   [sizes, n] int32: of each point of P the nearest among the first s queries, ties to the lowest; -1: none
/// farthest [clouds, sizes] int32: the query that gives the largest distance, ties to the lowest
/// terms    [clouds, sizes, 3] float64: mean over queries of the distance to P, the largest of them, mean over P of the
///          distance to the queries
///
/// A query without a nearest point makes the first two terms of its cloud NaN; a point of P without an owner the third.
/// Sums are in double and in a fixed order on each device. Throws Error{bad_argument} for wrong shapes and mixed
/// devices. O(n m) time.
struct SimplificationRows {
    View<int32_t, 2> owners = {};
    View<int32_t, 2> farthest = {};
};
void simplification(const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                    View<const int32_t, 1> nearest, const SimplificationRows& rows, View<double, 3> terms,
                    Stream stream = {});

/// dL_dqueries [clouds * m, 3] from dL_dterms [clouds, sizes, 3] and what simplification() found, which is held fixed;
/// P gets no gradient. The same from run to run. O(n m sizes) comparisons.
void simplification_backward(const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                             View<const int32_t, 1> nearest, const SimplificationRows& rows,
                             View<const double, 3> dL_dterms, View<float, 2> dL_dqueries, Stream stream = {});

namespace cuda {
void simplification(const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                    View<const int32_t, 1> nearest, const SimplificationRows& rows, View<double, 3> terms,
                    Stream stream);
void simplification_backward(const Clouds& points, const Clouds& queries, std::span<const int64_t> sizes,
                             View<const int32_t, 1> nearest, const SimplificationRows& rows,
                             View<const double, 3> dL_dterms, View<float, 2> dL_dqueries, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
