#include "stipple/tasks/pose.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;

int determinant(const Pose& pose) {
    const auto m = matrix_of(pose);
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

const Axis kAxes[] = {{0, 1}, {0, -1}, {1, 1}, {1, -1}, {2, 1}, {2, -1}};

TEST(Pose, TakesOneDirectionToTheOther) {
    for (const Axis& from : kAxes)
        for (const Axis& to : kAxes) {
            const Pose pose = turn(from, to);
            EXPECT_EQ(determinant(pose), 1);
            EXPECT_EQ(taken_up(pose, to), from);
            Array<float, 2> point({1, 3});
            std::fill_n(point.data(), 3, 0.0f);
            point.data()[from.index] = static_cast<float>(from.sign);
            turn_points(point, pose);
            for (int i = 0; i < 3; ++i) EXPECT_EQ(point.data()[i], i == to.index ? static_cast<float>(to.sign) : 0.0f);
        }
}

TEST(Pose, AllAreDifferentAndTheFirstIsNone) {
    for (const Axis& up : kAxes) {
        const std::vector<Pose> poses = all_poses(up);
        ASSERT_EQ(poses.size(), 24u);
        EXPECT_EQ(poses[0], Pose{});
        for (size_t i = 0; i < 24; ++i) {
            EXPECT_EQ(determinant(poses[i]), 1);
            EXPECT_EQ(std::count(poses.begin(), poses.end(), poses[i]), 1);
            EXPECT_EQ(taken_up(poses[i], up), taken_up(poses[i / 4 * 4], up));
        }
    }
    // Counterclockwise for one who looks against z: x goes to y.
    const std::vector<Pose> about = poses_about({2, 1}, {2, 1});
    EXPECT_EQ(about[1], turn({0, 1}, {1, 1}));
    EXPECT_EQ(about[1] * about[3], Pose{});
}

TEST(Pose, AxesAreNamed) {
    for (const Axis& axis : kAxes) EXPECT_EQ(parse_axis(name_of(axis)), axis);
    EXPECT_TRUE(contains(message_of([] { parse_axis("w"); }), "is no axis"));
    EXPECT_TRUE(contains(message_of([] { parse_axis("--z"); }), "is no axis"));
    EXPECT_EQ(up_of({}), (Axis{2, 1}));
    EXPECT_EQ(up_of({{"stipple.up", "-y"}}), (Axis{1, -1}));
    EXPECT_TRUE(contains(message_of([] { up_of({{"stipple.up", "up"}}); }), "stipple.up"));
}

}  // namespace
}  // namespace stipple::tasks
