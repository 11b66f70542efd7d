// Registration of real scans to known poses. bench/geometry/icp_study.cpp does the same with all scans and ten seeds.

#include <gtest/gtest.h>

#include "stipple/geometry/registration_verdict.h"
#include "tests/geometry/scans.h"
#include "tests/support/data_sets.h"

namespace stipple::test {
namespace {

TEST(GeometryIcpScans, TheLidarPairMeetsItsGroundTruth) {
    STIPPLE_NEEDS_DATA("scans/lidar_pair");
    const LidarPair pair = lidar_pair(*data_file("."));
    const geometry::IcpResult found = geometry::icp(pair.source, pair.target);
    EXPECT_TRUE(found.converged());
    EXPECT_EQ(found.undetermined, 0);
    const geometry::RigidTransform off = geometry::inverse(pair.truth) * found.transform;
    EXPECT_LE(std::hypot(off.translation[0], off.translation[1], off.translation[2]), 0.1);
    EXPECT_LE(geometry::rotation_angle(off) * 180 / M_PI, 0.3);
    EXPECT_EQ(geometry::judge(found).text(), "");
}

TEST(GeometryIcpScans, BunnyScansReturnToTheirPoses) {
    STIPPLE_NEEDS_DATA("scans/bunny");
    const std::vector<Scan> scans = bunny_scans(*data_file("."));
    ASSERT_EQ(scans.size(), 10u);
    for (size_t i = 0; i < scans.size(); ++i) {
        SCOPED_TRACE(scans[i].name);
        const geometry::RigidTransform start = perturbed(scans[i], 10, 0.01, i);
        EXPECT_GT(displacement(scans[i].cloud, start, scans[i].pose).rms, 0.009);
        const geometry::IcpResult found = geometry::icp(scans[i].cloud, other_scans(scans, i), {}, start);
        EXPECT_TRUE(found.converged());
        EXPECT_LE(displacement(scans[i].cloud, found.transform, scans[i].pose).rms, 0.0006);
        EXPECT_EQ(geometry::judge(found).text(), "");
    }
}

}  // namespace
}  // namespace stipple::test
