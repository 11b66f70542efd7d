#pragma once
// LiDAR odometry after KISS-ICP [Vizzo et al. 2023]: the poses of a sensor that moves, from its sweeps one after the
// other.
//
//   Odometry odometry;
//   for (...) poses.push_back(odometry.add(sweep, times).pose);
//
// Each sweep starts where the one before would lead at constant velocity, is freed of the sensor's own motion where its
// points have times, and is laid by ICP on a local map: cells with a few points each, as far as the sensor sees. How
// far pairs may be apart follows from how wrong the guesses were so far.

#include <memory>
#include <span>
#include <vector>

#include "stipple/geometry/rigid_transform.h"

namespace stipple::geometry {

struct OdometryOptions {
    /// Points nearer or farther than these do not count, and the map ends there. 0: farthest 1.2 times the range that
    /// holds 99 % of the first sweep's points, nearest a fortieth of the farthest: the vehicle itself.
    double max_range = 0, min_range = 0;
    double voxel = 0;     // edge of the map's cells; 0: a hundredth of max_range
    bool deskew = true;   // where times are given
    int iterations = 60;  // of ICP for a sweep, at most
};

/// What speaks against a pose.
///
/// few_points  too few points in range: the pose is the guess
/// elsewhere   too little of the sweep lies on the map: the pose is the guess
/// jump        it lies well, but far from the guess: sweeps are missing, or the place repeats itself
enum class SweepTrouble { none, few_points, elsewhere, jump };
const char* to_string(SweepTrouble trouble);

struct SweepPose {
    RigidTransform pose;    // of the middle of the sweep, to that of the first
    RigidTransform motion;  // in the time of the sweep: what its points were freed of
    int64_t points = 0;     // in range
    int64_t used = 0;       // of them, thinned, by ICP
    int64_t pairs = 0;      // of those, within reach of the map
    int64_t close = 0;      // of those, that lie on it
    double reach = 0;       // greatest distance of a pair
    double rmse = 0;        // of the pairs that count fully or nearly: residuals weighted by the kernel
    double deviation = 0;   // of the pose from the guess: the most that a point in range can be moved
    int iterations = 0;
    SweepTrouble trouble = SweepTrouble::none;
    /// Three sweeps in a row without a pose of their own: what comes after means nothing.
    bool is_lost = false;
};

class Odometry {
public:
    /// Throws Error{bad_argument} for negative and non-finite lengths and min_range not below max_range.
    explicit Odometry(const OdometryOptions& options = {});
    ~Odometry();
    Odometry(Odometry&&) noexcept;
    Odometry& operator=(Odometry&&) noexcept;

    /// The sweep in coordinates of the sensor. `times`: none, or one for each point, of any unit and origin; the least
    /// is when the sweep began, the greatest when it ended. Where they go on from sweep to sweep, guesses know the time
    /// between two, so that sweeps may be missing; where they begin anew each time, the next sweep begins when one
    /// ends. Points with a coordinate or a time that is not finite do not count. Throws Error{bad_argument} for another
    /// number of times and clouds that are not on the CPU, and Error{bad_file} for a first sweep without points from
    /// which the range could follow.
    ///
    /// Everything scales with the sweeps, so that their unit does not matter. Memory is bounded by the range: at most
    /// 20 points in each cell within it. The same bits on any number of threads. O(points).
    SweepPose add(const PointCloud& sweep, std::span<const double> times = {});

    /// With the lengths that followed from the first sweep.
    const OdometryOptions& options() const;
    int64_t map_points() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The points of a sweep as the sensor would have seen them at its middle, where it moved by `motion` in the time of
/// the sweep: turn and shift grow evenly. As above for times; without any the cloud as it is.
PointCloud deskewed(const PointCloud& sweep, std::span<const double> times, const RigidTransform& motion);

}  // namespace stipple::geometry
