#pragma once
// Distances between two clouds, in each published convention. All of them are sums or maxima of the same two lists of
// nearest distances: search once (nearest.h), then ask for any number of conventions.

#include <string_view>

#include "stipple/metrics/nearest.h"

namespace stipple::metrics {

struct CloudDistances {
    Distances to_truth;    // of the points of the prediction
    Distances from_truth;  // of the points of the truth, to the prediction
};

CloudDistances cloud_distances(const NearestBoth& nearest);  // a is the prediction, b the truth

enum class ChamferKind {
    squared_sum,   // mean d^2 + mean d^2: PU-GAN, PU-GCN, PyTorch3D, "CD-T", "CD-L2"
    squared_half,  // half of it: PUDM, PUFM
    l1_sum,        // mean d + mean d
    l1_half,       // half of it: "CD-P", "CD-L1", Occupancy Networks
    l1_max,        // the larger of the two means
};

enum class HausdorffKind {
    symmetric,     // max of the two maxima of d: Hausdorff's
    to_truth,      // max d of the prediction alone
    from_truth,    // max d of the truth alone
    squared_sum,   // max d^2 + max d^2: "HD" of PU-GAN and PU-GCN
    squared_half,  // half of it: "HD" of PUDM and PUFM
};

/// NaN when a direction that it needs has no points.
double chamfer(const CloudDistances& distances, ChamferKind kind);
double hausdorff(const CloudDistances& distances, HausdorffKind kind);

/// The registry's row.
std::string_view metric_of(ChamferKind kind);
std::string_view metric_of(HausdorffKind kind);

/// Share of points nearer than or at `radius` to the other cloud [Knapitsch et al. 2017]. A point without a finite
/// coordinate counts as far.
struct FScore {
    double precision = 0;  // of the prediction
    double recall = 0;     // of the truth
    double f = 0;          // harmonic mean; 0 when both are 0
};

/// Throws Error{bad_argument} for a radius below 0 or NaN. Shares of an empty cloud are NaN.
FScore f_score(const NearestBoth& nearest, double radius);

/// How far normals at nearest points agree [Mescheder et al. 2019]: mean of |n_i . n_nearest(i)|, or without the
/// absolute value when both sides are oriented.
struct NormalConsistency {
    double to_truth = 0, from_truth = 0;  // each direction; NaN when it has no pair
    double mean = 0;                      // of the two
    int64_t used = 0;                     // pairs; normals that are zero or not finite are left out
};

/// normals [n, 3], [m, 3] on the CPU, of any length above 0.
NormalConsistency normal_consistency(const NearestBoth& nearest, View<const float, 2> normals,
                                     View<const float, 2> truth_normals, bool oriented = false);

}  // namespace stipple::metrics
