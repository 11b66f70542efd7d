#include "stipple/tasks/register_scans.h"

#include <gtest/gtest.h>

#include "stipple/tasks/scan_poses.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;

TEST(RegisterScans, AutomaticChoosesByTheStart) {
    const PointCloud source = test::lumpy_body(4000, 1), body = test::lumpy_body(4000, 2);
    RegisterOptions options;
    options.method = RegisterMethod::automatic;
    const RigidTransform small = geometry::rotation_about({1, 2, 3}, 0.05),
                         large = geometry::rotation_about({1, 2, 3}, 2);
    const Registration near = register_clouds(source, geometry::transformed(body, small), options);
    EXPECT_EQ(near.method, RegisterMethod::icp);
    EXPECT_LT(pose_error(near.found.transform, small, source).degrees, 1);
    EXPECT_GT(near.trust.confidence, 0.5);
    const Registration far = register_clouds(source, geometry::transformed(body, large), options);
    EXPECT_EQ(far.method, RegisterMethod::global);
    EXPECT_LT(pose_error(far.found.transform, large, source).degrees, 1);
    EXPECT_FALSE(far.failure);
    EXPECT_TRUE(test::contains(far.story, "all poses were searched"));
    EXPECT_EQ(method_by_name("global"), RegisterMethod::global);
    EXPECT_TRUE(test::contains(test::message_of([] { method_by_name("fpfh"); }), "auto, icp, global"));
}

TEST(RegisterScans, NothingIsFoundInNothing) {
    PointCloud point(20);
    std::fill_n(point.positions.data(), 60, 1.0f);
    RegisterOptions options;
    options.method = RegisterMethod::global;
    const Registration found = register_clouds(point, test::lumpy_body(500, 1), options);
    ASSERT_TRUE(found.failure);
    EXPECT_EQ(found.failure->code(), ErrorCode::check_failed);
    EXPECT_TRUE(test::contains(found.failure->what(), "no pose found"));
}

TEST(RegisterScans, WhatSharesNothingIsNotPlaced) {
    const PointCloud body = test::lumpy_body(5000, 1),
                     other = geometry::transformed(test::lumpy_body(5000, 2), test::any_pose(3, 4));
    PointCloud flat(1500);  // a plane, which fits anywhere and nowhere
    for (int64_t i = 0; i < flat.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            flat.positions.data()[3 * i + axis] =
                axis == 2 ? 0 : 0.05f * static_cast<float>(axis == 0 ? i % 40 : i / 40);
    const PointCloud* const scans[] = {&body, &other, &flat};
    ScansOptions options;
    options.pairs.method = RegisterMethod::automatic;
    int calls = 0;
    const RegisteredScans found = register_scans(scans, options, [&] { ++calls; });
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(found.is_placed, (std::vector<uint8_t>{1, 1, 0}));
    EXPECT_EQ(found.verdict.state, geometry::RegistrationState::doubtful);
    EXPECT_LT(pose_error(found.poses[1], geometry::inverse(test::any_pose(3, 4)), other).degrees, 1);
    EXPECT_NE(test::message_of([&] { register_scans(std::span(scans).first(1), options); }), "");
}

TEST(ScanPoses, AreReadAsTheyWereWritten) {
    const std::vector<ScanPose> poses = {{"a.ply", test::any_pose(1, 3)}, {"b.ply", {}}};
    const std::vector<ScanPose> read = parse_scan_poses(to_text(poses));
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].pose, poses[0].pose);
    EXPECT_EQ(find_pose(read, "folder/b.ply"), &read[1]);
    EXPECT_EQ(find_pose(read, "c.ply"), nullptr);
    EXPECT_TRUE(has_scan_poses(to_text(poses)));
    EXPECT_FALSE(has_scan_poses(geometry::to_text(poses[0].pose)));
    // A quarter about z by the transposed rotation: x goes to -y.
    const std::vector<ScanPose> conf =
        parse_scan_poses("camera 1 2 3\n# none\nbmesh s.ply 1 0 0 0 0 0.70710678118654752 0.70710678118654752\n");
    ASSERT_EQ(conf.size(), 1u);
    const geometry::Vector3 at = conf[0].pose({1, 0, 0});
    EXPECT_NEAR(at[0], 1, 1e-12);
    EXPECT_NEAR(at[1], -1, 1e-12);
}

TEST(ScanPoses, BrokenTextsNameTheLine) {
    const auto message = [](const std::string& text) { return test::message_of([&] { parse_scan_poses(text); }); };
    EXPECT_TRUE(test::contains(message("\nbmesh a 1 2 3\n"), "seven numbers"));
    EXPECT_TRUE(test::contains(message("bmesh a 0 0 0 0 0 0 0\n"), "length 0"));
    EXPECT_TRUE(test::contains(message("bmesh a 0 0 nan 0 0 0 1\n"), "seven numbers"));
    EXPECT_TRUE(test::contains(message("scan\n"), "name"));
    EXPECT_TRUE(test::contains(message("scan a\n1 0 0 0\n"), "ends within"));
    EXPECT_TRUE(test::contains(message("scan a\n1 0 0 0\n0 2 0 0\n0 0 1 0\n0 0 0 1\n"), "rigid"));
    EXPECT_TRUE(test::contains(message("bmesh a 0 0 0 0 0 0 1\nbmesh a 0 0 0 0 0 0 1\n"), "twice"));
}

}  // namespace
}  // namespace stipple::tasks
