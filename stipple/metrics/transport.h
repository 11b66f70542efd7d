#pragma once

#include "stipple/metrics/normalise.h"

namespace stipple::metrics {

/// exact    the least costly matching, to the last bits of float64; up to 4096 points, CPU
/// auction  up to a proven gap of 1 %; up to 2^20 points, CPU or CUDA. Exact, on the CPU, for clouds up to 4096 points
///          of sizes that do not divide each other: that is faster.
enum class EmdMethod { exact, auction };

struct Emd {
    double value = 0;        // mean over the matched pairs of the distance
    double lower_bound = 0;  // no matching costs less: `value` itself when exact
};

/// Earth mover's distance: the mean distance, not squared, between matched points in the cheapest matching.
///
/// Clouds of two sizes are matched by parts (ops/emd_transport.h): every point weighs 1 / n and 1 / m. Throws
/// Error{bad_argument} for empty clouds, for non-finite points, and for more points than the method takes.
/// The "approxmatch" of Fan et al. 2017, which many papers print as EMD, is not a matching and is not offered.
Emd earth_mover(const Points& prediction, const Points& truth, EmdMethod method, Device device = {});

}  // namespace stipple::metrics
