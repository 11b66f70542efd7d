#pragma once
// Upsampled sweeps of spinning LiDARs, judged by rings that were left out.

#include <array>

#include "stipple/geometry/sweep_rings.h"

namespace stipple::tasks::study {

/// A sweep and what is left of it without every second ring, counted from the highest one, in the order of its points.
struct RingTest {
    PointCloud sweep, halved;
    geometry::SweepRings rings;    // of the sweep
    std::vector<uint8_t> is_left;  // [n] whether a point of the sweep lies in a ring that was left out
};

/// Throws Error{bad_argument} for a cloud whose rings are not found, or 16 of them.
RingTest leave_out_rings(PointCloud sweep);

/// Scores of new points: those of the output that are none of the halved sweep's. A point is judged by the plane of the
/// 15 points of the whole sweep that are nearest to it in the ring of the nearest one and in those above and below it,
/// five in each, within 30 m of the sensor and where these points lie on a plane, to 5 cm RMS: not at edges.
struct RingScores {
    int64_t made = 0;       // new points
    double at_left = 0;     // percent of them whose nearest point of the sweep lies in a ring that was left out
    double error_left = 0;  // cm from the plane, mean of those
    double error_all = 0;   // cm from the plane, mean of all
    double invented = 0;    // percent farther than 1.5 local spacings of the sweep from all of its points (RulerScores)
    double unsupported = 0;  // percent that are so and farther than 10 cm from the plane, or without one
    double cover = 0;        // cm from points left out within 30 m to the nearest point of the output, mean
    double intensity = 0;    // from new points at rings left out to the nearest point there, mean difference; NaN: none
    double plane = 0;        // cm from the largest plane of the halved sweep, mean of new points within 10 cm of it
    double plane_input = 0;  // likewise of the halved sweep's own points
};
inline constexpr const char* kRingColumns[] = {
    "new points",   "at rings left out (%)", "error there (cm)", "error (cm)",
    "invented (%)", "unsupported (%)",       "cover (cm)",       "intensity",
    "plane (cm)",   "plane, input (cm)"};
std::array<double, 10> columns_of(const RingScores& scores);  // in this order

/// Both on the CPU with one origin. O(n log n).
RingScores measure_by_rings(const PointCloud& output, const RingTest& test);

}  // namespace stipple::tasks::study
