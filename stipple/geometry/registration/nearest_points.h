#pragma once
// A scan in a pose, and the nearest point of the other scan to each of its points: what poses are judged by.

#include "stipple/geometry/thin_scan.h"

namespace stipple::geometry {

/// By the source's rows.
struct NearestPoints {
    RigidTransform local;          // source to target, both about their origins
    int64_t points = 0;            // that were asked for
    Array<float, 2> moved;         // [n, 3] about the target's origin
    Array<int32_t, 2> nearest;     // [n, 1] of the target, -1 where none is within reach
    Array<float, 2> distances_sq;  // [n, 1]
};

/// Within `reach` or a little more. The order of the source's tree serves in any pose, so that nothing is sorted. O(n
/// log m). Deterministic for any number of threads.
NearestPoints nearest_points(const ThinScan& source, const ThinScan& target, const RigidTransform& pose, double reach);

/// support_of() by neighbours that are known, up to kSupportReach cells or more.
constexpr double kSupportReach = 3;
PoseSupport support_of(const ThinScan& source, const ThinScan& target, const NearestPoints& near, int sign);

}  // namespace stipple::geometry
