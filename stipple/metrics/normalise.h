#pragma once
// Frames: where clouds are brought before they are compared, and how.

#include <array>

#include "stipple/core/point_cloud.h"

namespace stipple::metrics {

/// A point of the world goes to (world - origin) / scale.
struct Frame {
    std::array<double, 3> origin = {};
    double scale = 1;
};

/// Points of one cloud in a frame, on the CPU. Distances are computed from `exact`, neighbours searched in `rounded`.
struct Points {
    Array<double, 2> exact;   // [n, 3]
    Array<float, 2> rounded;  // [n, 3] the same, rounded once
    int64_t finite = 0;       // points whose coordinates are all finite; the others are kept as they are

    int64_t size() const { return exact.size(0); }
};

/// The frame of "unit sphere": origin the mean of the finite points, scale their largest distance from it (1 when that
/// is 0), in float64. Throws Error{bad_argument} without a finite point. CPU or CUDA (copied).
Frame unit_sphere(const PointCloud& cloud);

/// The cloud in a frame, computed in float64 from its float64 origin and float32 positions: origins of 1e7 lose
/// nothing. CPU or CUDA (copied). The scale must be above 0.
Points in_frame(const PointCloud& cloud, const Frame& frame);

}  // namespace stipple::metrics
