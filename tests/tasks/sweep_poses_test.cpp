#include "stipple/tasks/sweep_poses.h"

#include <gtest/gtest.h>

#include "tests/geometry/registration/shapes.h"
#include "tests/support/temporary_folder.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;

/// Straight ahead, a metre each.
std::vector<RigidTransform> straight(int count, double step = 1) {
    std::vector<RigidTransform> poses(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) poses[i].translation = {step * i, 0, 0};
    return poses;
}

TEST(SweepPoses, WhatIsWrittenIsRead) {
    std::vector<RigidTransform> poses;
    for (uint64_t i = 0; i < 5; ++i) poses.push_back(test::any_pose(i, 100));
    const std::vector<RigidTransform> read = parse_kitti_poses(to_kitti_poses(poses));
    ASSERT_EQ(read.size(), poses.size());
    for (size_t i = 0; i < poses.size(); ++i) {
        EXPECT_EQ(read[i].translation, poses[i].translation);
        EXPECT_LT(geometry::rotation_angle(geometry::inverse(read[i]) * poses[i]), 1e-14);
    }
    EXPECT_EQ(to_kitti_poses(straight(2)), "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0 1 0 1 0 0 0 0 1 0\n");
    // As the data set has them.
    const auto kitti = parse_kitti_poses(
        "9.999996e-01 -9.035185e-04 -2.101169e-04 1.289128e+00 9.037964e-04 9.999987e-01 1.325646e-03 -1.821616e-02 "
        "2.089193e-04 -1.325834e-03 9.999991e-01 1.310643e+00\r\n\n");
    ASSERT_EQ(kitti.size(), 1u);
    EXPECT_EQ(kitti[0].translation[2], 1.310643);
}

TEST(SweepPoses, TextThatIsNoneIsRefused) {
    const auto fails = [](const std::string& text, const std::string& words) {
        const std::string message = test::message_of([&] { parse_kitti_poses(text); });
        EXPECT_TRUE(test::contains(message, words)) << message;
    };
    const std::string good = "1 0 0 0 0 1 0 0 0 0 1 0\n";
    fails(good + "1 0 0 0 0 1 0 0 0 0 1\n", "2: expected twelve numbers");
    fails("1 0 0 0 0 1 0 0 0 0 1 0 7\n", "1: more than twelve numbers");
    fails("1 0 0 nan 0 1 0 0 0 0 1 0\n", "1: expected twelve numbers");
    fails("1 0 0 0 0 1 0 0 0 0 -1 0\n", "1: ");
    fails("2 0 0 0 0 1 0 0 0 0 1 0\n", "1: ");
    const test::TemporaryFolder folder;
    const auto file = [&](const char* name, const char* text) {
        test::write_file(folder / name, text);
        return folder / name;
    };
    EXPECT_TRUE(test::contains(test::message_of([&] { load_kitti_poses(file("empty.txt", "\n")); }),
                               "empty.txt: holds no poses"));
    EXPECT_TRUE(test::contains(test::message_of([&] { load_kitti_calibration(file("c.txt", "P0: 1\n")); }),
                               "c.txt: has no line \"Tr:\""));
    const RigidTransform camera =
        load_kitti_calibration(file("calib.txt", "P0: 1 2\nTr: 0 -1 0 0.1 0 0 -1 0.2 1 0 0 0.3\n"));
    EXPECT_EQ(camera.translation, (geometry::Vector3{0.1, 0.2, 0.3}));
    EXPECT_EQ(camera.rotation[2], (geometry::Vector3{1, 0, 0}));
}

TEST(SweepPoses, DriftIsThatOfKitti) {
    const std::vector<RigidTransform> truth = straight(501);
    // Two per cent too long, and a hundredth of a degree of yaw to each metre.
    std::vector<RigidTransform> poses = straight(501, 1.02);
    Drift drift = pose_drift(poses, truth);
    EXPECT_TRUE(drift.is_kitti);
    ASSERT_EQ(drift.rows.size(), 4u);  // 100 to 400: 500 is as long as the path
    EXPECT_EQ(drift.path, 500);
    // The first pose beyond the length ends a segment, as in the development kit: 101 m for one of 100.
    EXPECT_NEAR(drift.rows[0].translation, 0.02 * 101 / 100, 1e-9);
    EXPECT_EQ(drift.rows[0].segments, 40);  // from every tenth pose
    EXPECT_NEAR(drift.end_translation, 10, 1e-9);
    EXPECT_NEAR(drift.all.degrees, 0, 1e-9);
    for (size_t i = 0; i < poses.size(); ++i)
        poses[i].rotation = geometry::rotation_about({0, 0, 1}, 0.01 * static_cast<double>(i) * M_PI / 180).rotation;
    drift = pose_drift(poses, truth);
    EXPECT_NEAR(drift.rows[0].degrees, 1.01, 1e-9);
    EXPECT_NEAR(drift.end_degrees, 5, 1e-9);
    EXPECT_NEAR(pose_drift(truth, truth).all.translation, 0, 1e-12);
}

TEST(SweepPoses, ShortDrivesHaveSegmentsThatFit) {
    const Drift drift = pose_drift(straight(41, 1.01), straight(41));
    EXPECT_FALSE(drift.is_kitti);
    ASSERT_EQ(drift.rows.size(), 3u);
    EXPECT_EQ(drift.rows[0].length, 5);
    EXPECT_EQ(drift.rows[2].length, 20);
    EXPECT_NEAR(drift.rows[2].translation, 0.01, 1e-9);
    EXPECT_NEAR(drift.end_translation, 0.4, 1e-9);
    // Two sweeps have an end and no segments.
    EXPECT_TRUE(pose_drift(straight(2, 1.1), straight(2)).rows.empty());
    EXPECT_NEAR(pose_drift(straight(2, 1.1), straight(2)).end_translation, 0.1, 1e-12);
    // Standing still has no segments, and one pose no end.
    EXPECT_TRUE(pose_drift(straight(5, 0), straight(5, 0)).rows.empty());
    EXPECT_EQ(pose_drift(straight(1), straight(1)).end_translation, 0);
    EXPECT_TRUE(
        test::contains(test::message_of([] { pose_drift(straight(3), straight(4)); }), "4 true poses for 3 sweeps"));
}

}  // namespace
}  // namespace stipple::tasks
