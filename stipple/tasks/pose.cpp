#include "stipple/tasks/pose.h"

#include <algorithm>

#include "stipple/core/error.h"
#include "stipple/core/quoted.h"

namespace stipple::tasks {

Axis parse_axis(const std::string& text) {
    const bool negative = !text.empty() && text[0] == '-';
    const std::string letter = text.substr(negative ? 1 : 0);
    STIPPLE_REQUIRE(letter == "x" || letter == "y" || letter == "z", "{} is no axis: x, y, z, -x, -y, -z",
                    in_quotes(text));
    return {letter[0] - 'x', negative ? -1 : 1};
}

std::string name_of(const Axis& axis) {
    return fmt::format("{}{}", axis.sign < 0 ? "-" : "", static_cast<char>('x' + axis.index));
}

Axis up_of(const std::map<std::string, std::string>& metadata) {
    const auto found = metadata.find("stipple.up");
    if (found == metadata.end()) return {};
    try {
        return parse_axis(found->second);
    } catch (const Error& error) {
        throw Error(ErrorCode::bad_file, fmt::format("stipple.up of the metadata: {}", error.message()));
    }
}

Pose turn(const Axis& from, const Axis& to) {
    Pose pose;
    if (from.index != to.index) {  // a quarter in the plane of the two; the third axis stays
        const int sign = from.sign * to.sign;
        pose.from[to.index] = from.index;
        pose.signs[to.index] = sign;
        pose.from[from.index] = to.index;
        pose.signs[from.index] = -sign;
    } else if (from.sign != to.sign) {  // a half about one of the others
        pose.signs[to.index] = -1;
        pose.signs[(to.index + 1) % 3] = -1;
    }
    return pose;
}

Pose operator*(const Pose& b, const Pose& a) {
    Pose both;
    for (int i = 0; i < 3; ++i) {
        both.from[i] = a.from[b.from[i]];
        both.signs[i] = b.signs[i] * a.signs[b.from[i]];
    }
    return both;
}

std::vector<Pose> poses_about(const Axis& direction, const Axis& up) {
    const int u = (up.index + 1) % 3, v = (up.index + 2) % 3;
    const Pose quarter = turn({u, 1}, {v, up.sign});  // counterclockwise, seen from above
    std::vector<Pose> poses = {turn(direction, up)};
    for (int i = 1; i < 4; ++i) poses.push_back(quarter * poses.back());
    return poses;
}

std::vector<Pose> all_poses(const Axis& up) {
    std::vector<Pose> poses;
    for (int i = 0; i < 3; ++i)
        for (const int sign : {1, -1}) {
            const Axis direction{(up.index + i) % 3, sign * up.sign};
            for (const Pose& pose : poses_about(direction, up)) poses.push_back(pose);
        }
    return poses;
}

const Fields& pose_fields() {
    static constexpr const char* kAxes[] = {"x", "y", "z", "-x", "-y", "-z"};
    static const Fields fields = {
        field<&PoseChoice::up>("up", "Up axis of the clouds; else that of the network, mostly z").words(kAxes),
        field<&PoseChoice::all>("poses", "Try all 24 poses, with --up its 4, and take the likeliest")};
    return fields;
}

std::vector<Pose> poses_of(const PoseChoice& choice, const Axis& network_up) {
    if (choice.up.empty()) return choice.all ? all_poses(network_up) : std::vector<Pose>{Pose{}};
    const Axis direction = parse_axis(choice.up);
    if (choice.all) return poses_about(direction, network_up);
    return {turn(direction, network_up)};
}

Axis taken_up(const Pose& pose, const Axis& up) {
    return {pose.from[up.index], pose.signs[up.index] * up.sign};
}

std::string text_of(const Pose& pose, const Axis& up) {
    const Axis direction = taken_up(pose, up);
    const std::vector<Pose> about = poses_about(direction, up);
    const auto quarters = std::find(about.begin(), about.end(), pose) - about.begin();
    return fmt::format("up {}, turned by {}", name_of(direction), 90 * quarters);
}

std::array<std::array<int, 3>, 3> matrix_of(const Pose& pose) {
    std::array<std::array<int, 3>, 3> matrix = {};
    for (int i = 0; i < 3; ++i) matrix[i][pose.from[i]] = pose.signs[i];
    return matrix;
}

void turn_points(Array<float, 2>& points, const Pose& pose) {
    if (pose == Pose{}) return;
    for (int64_t i = 0; i < points.size(0); ++i) {
        float* p = points.data() + 3 * i;
        const float old[3] = {p[0], p[1], p[2]};
        for (int axis = 0; axis < 3; ++axis) p[axis] = static_cast<float>(pose.signs[axis]) * old[pose.from[axis]];
    }
}

}  // namespace stipple::tasks
