// Scans in any pose: what is believed is right, what is wrong is told. bench/geometry/scan_study.cpp does all pairs.

#include <gtest/gtest.h>

#include "stipple/tasks/register.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/geometry/scans.h"
#include "tests/support/data_sets.h"

namespace stipple::tasks {
namespace {

using geometry::RegistrationState;
using geometry::RigidTransform;

Registration register_by(RegisterMethod method, const PointCloud& source, const PointCloud& target) {
    RegisterOptions options;
    options.method = method;
    return register_clouds(source, target, options);
}

TEST(RegisterAnyPose, DustyChairHalfRoundIsRightAndWritten) {
    const std::string folder = std::string(STIPPLE_SOURCE_DIR) + "/examples/data/";
    const PointCloud front = test::load_scan(folder + "chair_front.ply"),
                     side = test::load_scan(folder + "chair_side.ply");
    const RigidTransform truth = geometry::parse_transform(test::read_file(folder + "chair_truth.matrix"));
    for (const double degrees : {160.0, 75.0}) {
        const RigidTransform turn = geometry::rotation_about({0, 0, 1}, degrees * M_PI / 180);
        const PointCloud turned = geometry::transformed(side, turn);
        const Registration found = register_by(RegisterMethod::automatic, turned, front);
        EXPECT_LT(pose_error(found.found.transform, truth * geometry::inverse(turn), turned).degrees, 2) << degrees;
        EXPECT_NE(found.verdict.state, RegistrationState::failed) << found.verdict.text();
        EXPECT_GE(found.trust.confidence, 0.5) << degrees;
    }
}

/// Left and right exchanged: no motion lays it on what it was.
PointCloud mirrored(const PointCloud& cloud) {
    PointCloud image = cloud.clone();
    for (int64_t i = 0; i < image.size(); ++i) image.positions.data()[3 * i] *= -1;
    return image;
}

TEST(RegisterAnyPose, MirrorImagesAreNotBelieved) {
    const std::string folder = std::string(STIPPLE_SOURCE_DIR) + "/examples/data/";
    const PointCloud scans[2][2] = {{test::lumpy_body(6000, 1), test::lumpy_body(6000, 2)},
                                    {test::load_scan(folder + "knot.ply"), test::load_scan(folder + "knot.ply")}};
    for (const auto& [source, target] : scans) {
        SCOPED_TRACE(source.size());
        const PointCloud turned = geometry::transformed(source, test::any_pose(3, 1));
        const Registration itself = register_by(RegisterMethod::global, turned, target);
        EXPECT_GE(itself.trust.confidence, 0.5) << itself.verdict.text();  // the knot is the same after half a turn
        const Registration image = register_by(RegisterMethod::global, mirrored(turned), target);
        EXPECT_NE(image.verdict.state, RegistrationState::good) << image.trust.confidence;
        EXPECT_LT(image.trust.confidence, itself.trust.confidence / 2);
    }
}

TEST(RegisterAnyPose, BunnyScansAreRightAndWritten) {
    STIPPLE_NEEDS_DATA("scans/bunny");
    const std::vector<test::Scan> scans = test::bunny_scans(*test::data_file("."));
    // The last one shares a smooth back, along which pairs that reach too far drag it.
    const int pairs[][2] = {{1, 0}, {2, 1}, {5, 0}, {4, 3}, {3, 2}};
    for (const auto& [from, to] : pairs) {
        SCOPED_TRACE(scans[from].name + " on " + scans[to].name);
        const RigidTransform any = test::any_pose(static_cast<uint64_t>(from), 0.1);
        const PointCloud turned = geometry::transformed(scans[from].cloud, any);
        const Registration found = register_by(RegisterMethod::global, turned, scans[to].cloud);
        const RigidTransform truth = geometry::inverse(scans[to].pose) * scans[from].pose * geometry::inverse(any);
        const PoseError error = pose_error(found.found.transform, truth, turned);
        EXPECT_LT(error.rms, 0.001);
        EXPECT_LT(error.degrees, 1);
        EXPECT_NE(found.verdict.state, RegistrationState::failed) << found.verdict.text();
    }
    // Front and back share next to nothing.
    EXPECT_NE(register_by(RegisterMethod::automatic, scans[3].cloud, scans[0].cloud).verdict.state,
              RegistrationState::good);
}

TEST(RegisterAnyPose, LidarPairFromABack) {
    STIPPLE_NEEDS_DATA("scans/lidar_pair");
    const test::LidarPair pair = test::lidar_pair(*test::data_file("."));
    const RigidTransform turn = geometry::rotation_about({0, 0, 1}, M_PI);
    const PointCloud turned = geometry::transformed(pair.source, turn);
    const Registration found = register_by(RegisterMethod::automatic, turned, pair.target);
    const PoseError error = pose_error(found.found.transform, pair.truth * geometry::inverse(turn), turned);
    EXPECT_EQ(found.verdict.state, RegistrationState::good) << found.verdict.text();
    EXPECT_LE(error.translation, 0.1);
    EXPECT_LE(error.degrees, 0.3);
}

}  // namespace
}  // namespace stipple::tasks
