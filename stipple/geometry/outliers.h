#pragma once

#include <limits>

#include "stipple/core/view.h"

namespace stipple::geometry {

struct OutlierStatistics {
    int64_t kept = 0;
    double mean = 0, deviation = 0;  // of the mean distances of the points, the deviation with n - 1
    double threshold = std::numeric_limits<double>::infinity();  // mean + ratio * deviation
};

/// Points that lie farther from their neighbours than is usual [Rusu et al. 2008].
///
/// points  [n, 3], CPU or CUDA
/// keep    [n] uint8, 1 where the mean distance to the k nearest points is at most threshold, else 0. The point itself
///         counts as one of the k, at distance 0, as in Open3D (nb_neighbors = k); PCL with MeanK = k - 1 keeps the
///         same points. A mean at the threshold is kept: where all are equal, nothing is an outlier (Open3D drops it)
/// k       2 to 128; a cloud of fewer points uses all of them
/// ratio   how many deviations above the mean; from 0
///
/// Non-finite points are not kept and do not count. Distances are the roots of ops::knn's float32 squares, summed in
/// float64 in order: CPU and CUDA keep the same points, for any number of threads. Throws Error{bad_argument} for wrong
/// shapes, k, ratio and mixed devices. Waits for the device. About O(n log n + n k) time; memory for 2^25 neighbours.
OutlierStatistics statistical_outliers(View<const float, 2> points, View<uint8_t, 1> keep, int k = 16, double ratio = 2,
                                       Stream stream = {});

/// Points that have few others near.
///
/// keep    [n] uint8, 1 where at least `neighbours` other points lie within the radius (squared distance <= radius *
///         radius, as ops::radius_count), else 0. Open3D's nb_points = m is neighbours = m: it counts the point itself,
///         and wants more than m. PCL's MinNeighborsInRadius = m too
/// radius  above 0
///
/// Returns how many are kept. Non-finite points are not, and are nobody's neighbours. CPU and CUDA keep the same
/// points. Throws Error{bad_argument} for wrong shapes, a radius that is not above 0, a negative count and mixed
/// devices. Waits for the device.
int64_t radius_outliers(View<const float, 2> points, View<uint8_t, 1> keep, float radius, int neighbours = 2,
                        Stream stream = {});

}  // namespace stipple::geometry
