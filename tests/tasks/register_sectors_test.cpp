// Verdicts on real sweeps that the confidence was not fitted to: sectors that share surface are right and believed,
// sectors that share none are not. Both bounds bite: a confidence that is capped believes nothing, one with other
// weights believes what is apart.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/tasks/register.h"
#include "tests/geometry/scans.h"
#include "tests/support/temporary_folder.h"

namespace stipple::tasks {
namespace {

using geometry::RegistrationState;
using geometry::RigidTransform;

const std::string kFolder = std::string(STIPPLE_SOURCE_DIR) + "/examples/data/scans/";

/// Points of a sweep in directions from `begin` on, in degrees.
PointCloud sector(const PointCloud& sweep, double begin, double width) {
    std::vector<int32_t> seen;
    for (int32_t i = 0; i < sweep.size(); ++i) {
        const double direction = std::atan2(sweep.positions.view()(i, 1), sweep.positions.view()(i, 0)) * 180 / M_PI;
        if (std::fmod(direction - begin + 720, 360) < width) seen.push_back(i);
    }
    return select(sweep, {seen.data(), {static_cast<int64_t>(seen.size())}});
}

class RegisterSectors : public testing::Test {
protected:
    struct Found {
        RegistrationState verdict;
        double confidence = 0;
        bool is_right = false;  // within 2 degrees and 0.3 m
    };

    /// The source is turned before, by another angle each time.
    Found found(const PointCloud& from, const PointCloud& onto, double degrees) const {
        const RigidTransform turn = geometry::rotation_about({0, 0, 1}, degrees * M_PI / 180);
        const PointCloud turned = geometry::transformed(from, turn);
        RegisterOptions options;
        options.method = RegisterMethod::global;
        const Registration registration = register_clouds(turned, onto, options);
        const PoseError error = pose_error(registration.found.transform, truth_ * geometry::inverse(turn), turned);
        return {registration.verdict.state, registration.trust.confidence,
                error.degrees < 2 && error.translation < 0.3};
    }

    PointCloud source_ = test::load_scan(kFolder + "lot_source.ply"),
               target_ = test::load_scan(kFolder + "lot_target.ply");
    RigidTransform truth_ = geometry::parse_transform(test::read_file(kFolder + "lot_truth.matrix"));
};

TEST_F(RegisterSectors, ThatShareSurfaceAreRightAndBelieved) {
    const Found whole = found(source_, target_, 100);
    EXPECT_TRUE(whole.is_right);
    EXPECT_EQ(whole.verdict, RegistrationState::good);
    double confidence = 0;
    for (int i = 0; i < 4; ++i) {
        const Found part = found(sector(source_, 90 * i, 180), sector(target_, 90 * i + 60, 180), 70 * i + 20);
        EXPECT_TRUE(part.is_right) << i;
        EXPECT_EQ(part.verdict, RegistrationState::good) << i << ": " << part.confidence;
        confidence += part.confidence / 4;
    }
    EXPECT_GE(confidence, 0.97);
}

TEST_F(RegisterSectors, ThatShareNothingAreNotBelieved) {
    int good = 0, written = 0;
    double confidence = 0;
    for (int i = 0; i < 6; ++i) {
        const Found part = found(sector(source_, 60 * i, 140), sector(target_, 60 * i + 180, 140), 50 * i + 10);
        EXPECT_FALSE(part.is_right) << i;
        good += part.verdict == RegistrationState::good;
        written += part.verdict != RegistrationState::failed;
        confidence += part.confidence / 6;
    }
    // Two walls and a ground that look like two others, once.
    EXPECT_LE(good, 1);
    EXPECT_LE(written, 2);
    EXPECT_LE(confidence, 0.45);
}

}  // namespace
}  // namespace stipple::tasks
