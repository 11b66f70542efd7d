#pragma once

#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/fields.h"
#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

struct PlaneOptions {
    double distance = 0;     // of points from their plane, at most; above 0
    int64_t count = 0;       // planes wanted, at most; 0: as many as there are
    int64_t min_points = 3;  // that a plane has; at least 3, or 0: a hundredth of the finite points
    int trials = 0;          // planes through three points that are tried for each; 0: as many as the finds make likely
    uint64_t seed = 0;
};
/// All but the seed.
const Fields& plane_fields();

/// All x with normal . x + offset = 0, in the world.
struct PlaneSegment {
    Vector3 normal = {};  // of unit length, the largest component positive
    double offset = 0;
    int64_t points = 0;
    double rms = 0;  // distance of its points
};
const Fields& plane_segment_fields();

struct PlaneSegments {
    std::vector<PlaneSegment> planes;  // in the order in which they were found, mostly from large to small
    Array<int32_t, 1> labels;          // [n] which of them a point belongs to; -1: none
    int64_t min_points = 3;            // that a plane had to have
};

/// Planes of a cloud, one after the other, each among the points that the ones before it left: RANSAC [Fischler and
/// Bolles 1981] with local optimisation [Chum et al. 2003].
///
/// Triples of points, half of them near each other, propose planes; a sample of at most 16384 points scores them; the
/// best are fitted to their points by least squares again and again, on the sample and then on all points, and the one
/// with the most points within the distance is taken. Trials go on until a plane as large as the best would have been
/// missed with a chance below 1e-6, or 20,000. A point belongs to the first plane that has it within the distance
/// (normal . x + offset in float64).
///
/// Ends when a plane has fewer than min_points. Non-finite points belong to none. The same for the same seed, on any
/// number of threads. Throws Error{bad_argument} for options out of their ranges. O(n) a plane. CPU.
PlaneSegments find_planes(const PointCloud& cloud, const PlaneOptions& options);

}  // namespace stipple::geometry
