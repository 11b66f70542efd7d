#pragma once
// Poses of a cloud: turns by quarters about the axes, which change no coordinate but its place and sign.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/fields.h"

namespace stipple::tasks {

/// A direction along an axis: "x", "-x", "y", "-y", "z", "-z".
struct Axis {
    int index = 2;  // 0 x, 1 y, 2 z
    int sign = 1;

    bool operator==(const Axis&) const = default;
};
/// Throws Error{bad_argument}.
Axis parse_axis(const std::string& text);
std::string name_of(const Axis& axis);
/// The upward axis of a network's clouds: "stipple.up" of the metadata; z where it is absent. Throws Error{bad_file}.
Axis up_of(const std::map<std::string, std::string>& metadata);

/// A turn: coordinate i of the turned cloud is signs[i] times coordinate from[i] of the cloud. Proper: no mirror.
struct Pose {
    std::array<int, 3> from = {0, 1, 2};
    std::array<int, 3> signs = {1, 1, 1};

    bool operator==(const Pose&) const = default;
};

/// The turn by a quarter or a half that takes one direction to the other; none where they are the same.
Pose turn(const Axis& from, const Axis& to);
/// First a, then b.
Pose operator*(const Pose& b, const Pose& a);

/// The four turns about `up`, a quarter each, of the cloud whose direction `direction` is up: the first is
/// turn(direction, up).
std::vector<Pose> poses_about(const Axis& direction, const Axis& up);
/// All 24, four for each direction that may be up, `up` itself first: the first is the cloud as it is.
std::vector<Pose> all_poses(const Axis& up);

/// How clouds lie, as a user says it, for networks that expect them upright.
struct PoseChoice {
    std::string up;    // "": as the network wants it
    bool all = false;  // poses are tried: the four about `up`, or all 24

    bool is_given() const { return all || !up.empty(); }
};
const Fields& pose_fields();
/// The poses to try for a network whose clouds have this axis up; the cloud as it is when nothing is chosen. Throws
/// Error{bad_argument}.
std::vector<Pose> poses_of(const PoseChoice& choice, const Axis& network_up);

/// The direction of the cloud that the pose takes to `up`.
Axis taken_up(const Pose& pose, const Axis& up);
/// For people: "up y, turned by 90".
std::string text_of(const Pose& pose, const Axis& up);
/// Rows of the rotation matrix.
std::array<std::array<int, 3>, 3> matrix_of(const Pose& pose);

/// Points [n, 3] on the CPU, in place.
void turn_points(Array<float, 2>& points, const Pose& pose);

}  // namespace stipple::tasks
