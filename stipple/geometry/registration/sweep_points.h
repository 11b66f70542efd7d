#pragma once
// Sweeps as odometry takes them: points in range with their moments, and the motion that they are freed of. Internal to
// Odometry.

#include <span>
#include <utility>
#include <vector>

#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

/// A sweep's points in range, as they were measured, and when: 0 at its beginning, 1 at its end.
struct SweepPoints {
    std::vector<Vector3> places;
    std::vector<double> moments;  // empty: not known
};

/// Throws Error{bad_argument} for another number of times than points, and clouds that are not on the CPU.
void require_times(const PointCloud& sweep, std::span<const double> times);
SweepPoints points_in_range(const PointCloud& sweep, std::span<const double> times, double nearest, double farthest);
/// The range that holds a share of the points; 0 without any but at the sensor itself.
double range_of(const PointCloud& sweep, double share);
/// Those at the indices.
SweepPoints chosen(const SweepPoints& points, const std::vector<int32_t>& indices);

/// A share of a motion whose turn and way grow evenly, as a vehicle's on a circle. Shares may be negative and above 1.
RigidTransform share_of(const RigidTransform& motion, double share);
/// Places as the sensor would have seen them at the middle of the sweep, in the time of which it moved by `motion`.
std::vector<Vector3> freed(const SweepPoints& points, const RigidTransform& motion);

/// When sweeps began, where their times are those of one clock.
class SweepClock {
public:
    /// Before a sweep is registered. Times that begin anew with each sweep say nothing of the time between two.
    void tell(std::span<const double> times);
    /// The time since the sweep before, beside that between the two before it.
    double guess() const { return guess_; }
    /// The time of the sweep beside that since the one before.
    double lasts() const { return lasts_; }

private:
    bool has_begun_ = false;
    double begin_ = 0, interval_ = 0;
    double guess_ = 1, lasts_ = 1;
};

}  // namespace stipple::geometry
