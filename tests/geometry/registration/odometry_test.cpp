#include "stipple/geometry/odometry.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "tests/support/lidar_drive.h"

namespace stipple::geometry {
namespace {

constexpr double kDegrees = 180 / M_PI;

std::span<const double> times_of(const PointCloud& sweep) {
    return {find(sweep.attributes, "time")->as<double>().data(), static_cast<size_t>(sweep.size())};
}

/// A drive with few beams: 11 metres a second, from the fourteenth sweep on into a turn.
test::DriveOptions small_drive() {
    test::DriveOptions options;
    options.sweeps = 30;
    options.rings = 24;
    options.columns = 360;
    options.straight = 1.4;
    return options;
}

/// How far a pose is from the true one.
struct Off {
    double metres = 0, degrees = 0;
};
Off off(const RigidTransform& pose, const RigidTransform& truth) {
    const RigidTransform error = inverse(truth) * pose;
    return {std::hypot(error.translation[0], error.translation[1], error.translation[2]),
            kDegrees * rotation_angle(error)};
}

/// On one thread: with sweeps as small as these threads wait for each other, for seconds on a busy machine.
class OdometryTest : public testing::Test {
protected:
    OdometryTest() { set_threads(1); }
    ~OdometryTest() override { set_threads(before_); }

private:
    int before_ = threads();
};

TEST_F(OdometryTest, ADriveIsFollowedWithinItsCentimetres) {
    const test::DriveOptions options = small_drive();
    const test::LidarDrive drive(options);
    Odometry odometry;
    Off worst;
    for (int i = 0; i < options.sweeps; ++i) {
        const PointCloud sweep = drive.sweep(i);
        const SweepPose found = odometry.add(sweep, times_of(sweep));
        EXPECT_EQ(found.trouble, SweepTrouble::none) << i;
        const Off now = off(found.pose, drive.truth(i));
        worst = {std::max(worst.metres, now.metres), std::max(worst.degrees, now.degrees)};
        // A guess that stands still, or the motion the wrong way round, is off by a metre each time.
        if (i > 3) {
            EXPECT_LT(found.deviation, 0.9) << i;
        }
    }
    // 31 metres and most of a turn. Without freeing sweeps of the motion it ends 0.3 m and 1.5 degrees off.
    EXPECT_LT(worst.metres, 0.12);
    EXPECT_LT(worst.degrees, 0.25);
}

TEST_F(OdometryTest, TimesAreWhatFreesSweepsOfTheMotion) {
    const test::DriveOptions options = small_drive();
    const test::LidarDrive drive(options);
    Odometry with, without({.deskew = false});
    Off bent, straight;
    for (int i = 0; i < options.sweeps; ++i) {
        const PointCloud sweep = drive.sweep(i);
        straight = off(with.add(sweep, times_of(sweep)).pose, drive.truth(i));
        bent = off(without.add(sweep, times_of(sweep)).pose, drive.truth(i));
    }
    EXPECT_GT(bent.degrees, 3 * straight.degrees);
}

TEST_F(OdometryTest, TheUnitDoesNotMatter) {
    test::DriveOptions options = small_drive();
    options.sweeps = 5;
    const test::LidarDrive drive(options);
    Odometry metres, millimetres;
    for (int i = 0; i < options.sweeps; ++i) {
        const PointCloud sweep = drive.sweep(i);
        PointCloud large = sweep.clone();
        for (int64_t k = 0; k < 3 * large.size(); ++k) large.positions.data()[k] *= 1024;
        const RigidTransform a = metres.add(sweep, times_of(sweep)).pose,
                             b = millimetres.add(large, times_of(sweep)).pose;
        for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(1024 * a.translation[axis], b.translation[axis], 0.1);
    }
}

TEST_F(OdometryTest, TheSameOnAnyNumberOfThreads) {
    test::DriveOptions options = small_drive();
    options.sweeps = 4;
    const test::LidarDrive drive(options);
    std::vector<RigidTransform> poses[2];
    for (int run = 0; run < 2; ++run) {
        set_threads(run == 0 ? 1 : 4);
        Odometry odometry;
        for (int i = 0; i < options.sweeps; ++i) {
            const PointCloud sweep = drive.sweep(i);
            poses[run].push_back(odometry.add(sweep, times_of(sweep)).pose);
        }
    }
    EXPECT_EQ(poses[0], poses[1]);
}

TEST_F(OdometryTest, MemoryIsThatOfTheRange) {
    test::DriveOptions options = small_drive();
    options.sweeps = 50;
    options.rings = 12;
    options.columns = 180;
    options.straight = 100;
    options.is_bent = false;
    const test::LidarDrive drive(options);
    Odometry near({.max_range = 15, .min_range = 1, .voxel = 0.75}),
        far({.max_range = 1000, .min_range = 1, .voxel = 0.75});
    int64_t most = 0;
    for (int i = 0; i < options.sweeps; ++i) {
        const PointCloud sweep = drive.sweep(i);
        near.add(sweep);
        far.add(sweep);
        if (i < 25) most = std::max(most, near.map_points());
    }
    EXPECT_LT(near.map_points(), 1.5 * static_cast<double>(most));  // the second half of the way adds nothing
    EXPECT_GT(far.map_points(), 2 * static_cast<double>(near.map_points()));
}

TEST_F(OdometryTest, SweepsOfNothingAreGuessedAndOtherPlacesAreLost) {
    test::DriveOptions options = small_drive();
    options.sweeps = 12;
    options.straight = 100;
    const test::LidarDrive drive(options);
    Odometry odometry;
    for (int i = 0; i < options.sweeps; ++i) {
        PointCloud sweep = drive.sweep(i);
        if (i == 6) std::fill_n(sweep.positions.data(), 3 * sweep.size(), std::numeric_limits<float>::quiet_NaN());
        const SweepPose found = odometry.add(sweep, times_of(sweep));
        EXPECT_EQ(found.trouble, i == 6 ? SweepTrouble::few_points : SweepTrouble::none) << i;
        EXPECT_LT(off(found.pose, drive.truth(i)).metres, 0.15) << i;
        EXPECT_FALSE(found.is_lost);
    }
    for (int i = 0; i < 4; ++i) {  // on their side: streets alone are much alike
        const PointCloud sweep = transformed(drive.sweep(i), rotation_about({1, 0, 0}, M_PI / 2));
        const SweepPose found = odometry.add(sweep, times_of(sweep));
        EXPECT_EQ(found.trouble, SweepTrouble::elsewhere) << i;
        EXPECT_EQ(found.is_lost, i >= 2) << i;
    }
}

TEST_F(OdometryTest, TimesTellThatSweepsAreMissing) {
    test::DriveOptions options = small_drive();
    options.sweeps = 14;
    options.straight = 100;
    const test::LidarDrive drive(options);
    Odometry odometry;
    for (const int i : {0, 1, 2, 3, 4, 5, 9, 10, 12}) {
        const PointCloud sweep = drive.sweep(i);
        const SweepPose found = odometry.add(sweep, times_of(sweep));
        EXPECT_EQ(found.trouble, SweepTrouble::none) << i;
        EXPECT_LT(off(found.pose, drive.truth(i)).metres, 0.12) << i;
    }
}

TEST_F(OdometryTest, WhatTravelsAlongIsDoubted) {
    test::DriveOptions options = small_drive();
    options.sweeps = 20;
    options.straight = 100;
    options.is_bent = false;
    const test::LidarDrive drive(options);
    Odometry odometry;
    for (int i = 0; i < options.sweeps; ++i) {
        const PointCloud town = drive.sweep(i);
        // The back of a car ahead and the front of one behind, at the same speed.
        constexpr int kWide = 9, kHigh = 7;
        PointCloud sweep(town.size() + 2 * kWide * kHigh);
        float* at = std::copy_n(town.positions.data(), 3 * town.size(), sweep.positions.data());
        for (const float x : {9.0f, -9.0f})
            for (int k = 0; k < kWide * kHigh; ++k, at += 3) {
                at[0] = x;
                at[1] = 0.25f * static_cast<float>(k % kWide - kWide / 2);
                at[2] = 0.25f * static_cast<float>(k / kWide) - 1.4f;
            }
        const SweepPose found = odometry.add(sweep);
        EXPECT_LT(off(found.pose, drive.truth(i)).metres, 0.3) << i;
    }
}

TEST_F(OdometryTest, APoseFarFromTheGuessIsAJump) {
    test::DriveOptions options = small_drive();
    options.sweeps = 8;
    options.is_bent = false;
    const test::LidarDrive drive(options);
    const RigidTransform slip = rotation_about({0, 0, 1}, 3 / kDegrees);
    Odometry odometry;
    for (int i = 0; i < options.sweeps; ++i) {
        const SweepPose found = odometry.add(i < 7 ? drive.sweep(i) : transformed(drive.sweep(i), inverse(slip)));
        EXPECT_EQ(found.trouble, i < 7 ? SweepTrouble::none : SweepTrouble::jump) << i;
        EXPECT_LT(off(found.pose, i < 7 ? drive.truth(i) : drive.truth(i) * slip).metres, 0.15) << i;
    }
}

void expect_refused(const std::function<void()>& work, const std::string& words) {
    try {
        work();
        ADD_FAILURE() << "nothing is thrown: " << words;
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
}

TEST_F(OdometryTest, RefusesWhatMakesNoSense) {
    expect_refused([] { Odometry({.max_range = -1}); }, "from 0, got -1");
    expect_refused([] { Odometry({.max_range = 1, .min_range = 2}); }, "is not below");
    expect_refused([] { Odometry({.iterations = 0}); }, "iterations");
    PointCloud cloud(100);
    std::fill_n(cloud.positions.data(), 300, std::numeric_limits<float>::quiet_NaN());
    const std::vector<double> times(99);
    expect_refused([&] { Odometry().add(cloud, times); }, "99 times for 100 points");
    expect_refused([&] { Odometry().add(cloud); }, "has no points from which a range");
    EXPECT_EQ(Odometry({.max_range = 10}).add(cloud).trouble, SweepTrouble::few_points);
}

TEST_F(OdometryTest, DeskewedPointsAreThoseOfTheMiddle) {
    // A quarter turn about z while driving along the circle of radius 2 about (0, 2): the middle is at an eighth.
    RigidTransform motion = rotation_about({0, 0, 1}, M_PI / 2);
    motion.translation = {2, 2, 0};
    PointCloud sweep(3);
    std::fill_n(sweep.positions.data(), 9, 0.0f);
    const std::vector<double> times = {5, 6, 7};
    const PointCloud straight = deskewed(sweep, times, motion);
    const double side = 2 * std::sin(M_PI / 4), ahead = 2 - 2 * std::cos(M_PI / 4);
    const double expected[3][2] = {{-side, ahead}, {0, 0}, {side, ahead}};
    for (int i = 0; i < 3; ++i)
        for (int axis = 0; axis < 2; ++axis)
            EXPECT_NEAR(straight.positions.data()[3 * i + axis], expected[i][axis], 1e-3) << i << " " << axis;
    const PointCloud same = deskewed(sweep, {}, motion);
    EXPECT_TRUE(std::equal(same.positions.data(), same.positions.data() + 9, sweep.positions.data()));
}

}  // namespace
}  // namespace stipple::geometry
