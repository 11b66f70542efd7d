#pragma once

#include "stipple/metrics/nearest.h"

namespace stipple::metrics {

/// How densely the points of one cloud lie, without reference to a surface.
struct Density {
    int64_t points = 0;                                                                // finite ones
    double spacing_mean = 0, spacing_deviation = 0, spacing_min = 0, spacing_max = 0;  // to the nearest other point
    double spacing_variation = 0;  // deviation / mean of the spacing: 0 on a lattice, about 0.52 for random points on a
                                   // plane
    double density_mean = 0;       // of per_point; points / length^2
    double density_variation = 0;  // deviation / mean
    Array<double, 1> per_point;    // [n] k / (pi r^2), r the distance to the k-th other point; NaN for non-finite
                                   // points, +infinity among more than k duplicates
};

/// Neighbours on `device`, numbers in float64. Points that coincide have spacing 0. A cloud of fewer than two finite
/// points has NaN for everything; k (1 to 127) is at most the number of the other points. O(n log n).
Density density_of(const Points& points, int k = 8, Device device = {});

}  // namespace stipple::metrics
