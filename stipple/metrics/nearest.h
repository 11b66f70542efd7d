#pragma once

#include <span>

#include "stipple/core/array.h"
#include "stipple/metrics/normalise.h"

namespace stipple::metrics {

/// The nearest point of the other cloud for every point of one, on the CPU.
struct Nearest {
    Array<int32_t, 1> index;   // [n] -1 for none
    Array<double, 1> squared;  // [n] squared distance, +infinity for none
};

struct NearestBoth {
    Nearest of_a, of_b;
};

/// Both ways, in one search (ops/nearest_pairs.h) on `device`.
///
/// The choice is made in float32, the distance computed in float64 between the exact coordinates: it is at most 2^-21
/// of the clouds' extent above the least one, and as a rule the least. Equal bits on every device and for any number of
/// threads. Points with a non-finite coordinate find nothing and are never found. About O((n + m) log(n + m)).
NearestBoth nearest_between(const Points& a, const Points& b, Device device = {});

/// One way only: of every point of `a`.
Nearest nearest_of(const Points& a, const Points& b, Device device = {});

/// What the distances of one direction come to. Means of no points are NaN.
struct Distances {
    int64_t count = 0;  // points that have a distance
    double mean = 0;
    double mean_squared = 0;
    double max = 0;

    double deviation() const;  // of the population: sqrt(mean_squared - mean^2)
};

/// Of squared distances, or of distances; infinite and NaN ones are left out. Sums in float64, in order.
Distances distances_of_squared(std::span<const double> squared);
Distances distances_of(std::span<const double> distances);

/// Of all points of both.
Distances pooled(const Distances& a, const Distances& b);

}  // namespace stipple::metrics
