#pragma once
// The sweeps of a drive in one frame: odometry over clouds that come one at a time, and a thinned map of them.

#include <functional>
#include <string>
#include <vector>

#include "stipple/geometry/odometry.h"
#include "stipple/geometry/registration_verdict.h"

namespace stipple::tasks {

/// When each point was measured: the attribute `time`, `t`, `timestamp`, `time_stamp`, `offset_time` or
/// `time_offset`, whatever its type and unit. Empty without one of one component.
std::vector<double> sweep_times(const PointCloud& sweep);

struct SequenceOptions {
    geometry::OdometryOptions odometry;
    double map_voxel = 0;     // of what `map` receives; 0: a quarter of odometry's
    bool keep_going = false;  // where the sensor is lost, and over sweeps that cannot be read, which count as empty
};

/// Where sweeps come from and results go.
struct SequenceFiles {
    std::function<std::string(size_t sweep)> name = {};  // in reasons and errors; empty: "sweep 7", from 0
    std::function<PointCloud(size_t sweep)> load = {};   // in coordinates of the sensor
    /// What the map gets of a sweep, in the frame of the first: the first point of each cell, freed of the sensor's
    /// motion, with an attribute `scan`, uint32, the number of the sweep. May be empty.
    std::function<void(PointCloud points, double voxel)> map = {};
    std::function<void()> done = {};  // after each sweep; may be empty
};

struct RegisteredSequence {
    std::vector<geometry::SweepPose> sweeps;  // up to where the sensor was lost, that one included
    geometry::OdometryOptions odometry;       // with the lengths that were chosen
    double map_voxel = 0;
    int64_t timed = 0;                // sweeps with times
    int64_t points = 0;               // of all sweeps
    int64_t non_finite = 0;           // of these, which do not count
    std::vector<std::string> unread;  // sweeps that count as empty, and why
    /// good: every sweep has a pose of its own; doubtful: some are guesses, or lie far from where they should, a reason
    /// for each; failed: the sensor was lost, or most sweeps have no pose of their own.
    geometry::RegistrationVerdict verdict;
    std::vector<geometry::RigidTransform> poses() const;
};

/// Loads, registers and forgets one sweep after the other, so that memory is that of a few sweeps and of the places in
/// range, whatever the length of the drive. For the same reason the map forgets what is out of range: a street that is
/// driven twice is in it twice. Throws Error{bad_argument} for fewer than two sweeps and negative lengths, what `load`
/// throws, at the sweep's name, and Error{interrupted}. Deterministic for any number of threads. CPU.
RegisteredSequence register_sequence(size_t sweeps, const SequenceOptions& options, const SequenceFiles& files);

}  // namespace stipple::tasks
