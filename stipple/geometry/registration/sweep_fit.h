#pragma once
// ICP of a sweep on the local map. Internal to Odometry.

#include <vector>

#include "stipple/geometry/odometry.h"
#include "stipple/geometry/registration/sweep_map.h"

namespace stipple::geometry {

struct SweepFit {
    RigidTransform pose;
    int64_t pairs = 0, close = 0, flat = 0, flat_close = 0;
    double rmse = 0;
    int iterations = 0;

    /// Pairs that lie on their planes, and the share they are: of poses the true one has most. Other points would tell
    /// of rings.
    double agreement() const {
        return flat > 0 ? static_cast<double>(flat_close) * static_cast<double>(flat_close) / static_cast<double>(flat)
                        : 0;
    }
};

/// From the guess, with pairs up to `reach` apart and the kernel of Geman and McClure, which begins to doubt at
/// `scale`.
SweepFit lay_on(const std::vector<Vector3>& places, const SweepMap& map, const RigidTransform& guess, double reach,
                double scale, const OdometryOptions& options);

}  // namespace stipple::geometry
