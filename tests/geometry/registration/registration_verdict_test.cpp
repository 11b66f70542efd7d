// Which registrations are believed: true poses, wrong ones with many pairs, none at all.

#include "stipple/geometry/registration_verdict.h"

#include <gtest/gtest.h>

#include "tests/geometry/scans.h"
#include "tests/support/data_sets.h"

namespace stipple::test {
namespace {

using geometry::IcpResult;
using geometry::RegistrationState;
using geometry::RegistrationVerdict;
using geometry::RigidTransform;

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// An uneven corner of a room, sampled at random.
PointCloud corner(int64_t n, uint64_t seed) {
    PointCloud cloud(n);
    const Rng rng(seed);
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(2 * i);
        const double u = 2 * rng.uniform(at), v = rng.uniform(at + 1), bump = 0.1 * std::sin(5 * u) * std::sin(4 * v);
        const double places[3][3] = {{u, v, bump}, {u, bump, v}, {bump, v, u / 2}};
        for (int axis = 0; axis < 3; ++axis)
            cloud.positions.data()[3 * i + axis] = static_cast<float>(places[i % 3][axis]);
    }
    return cloud;
}

RegistrationVerdict verdict_of(const PointCloud& source, const PointCloud& target, const RigidTransform& start = {}) {
    return geometry::judge(geometry::icp(source, target, {}, start));
}

TEST(GeometryRegistrationVerdict, BunnyScansHalfATurnApartAreDoubted) {
    STIPPLE_NEEDS_DATA("scans/bunny");
    const std::vector<Scan> scans = bunny_scans(*data_file("."));
    const auto& front = scans[0];
    const auto& back = scans[3];
    ASSERT_EQ(front.name + back.name, "bun000.plybun180.ply");
    geometry::IcpOptions options;
    options.metric = geometry::IcpMetric::generalised;
    const IcpResult found = geometry::icp(back.cloud, front.cloud, options);
    EXPECT_GT(found.fitness, 0.5);  // many pairs, in a wrong pose
    EXPECT_GT(displacement(back.cloud, found.transform, back.pose).rms, 0.05);
    const RegistrationVerdict verdict = geometry::judge(found);
    EXPECT_EQ(verdict.state, RegistrationState::doubtful);
    EXPECT_TRUE(contains(verdict.text(), "probably not the true pose")) << verdict.text();
    // An eighth of a turn is found from the same start.
    EXPECT_EQ(verdict_of(scans[1].cloud, front.cloud).text(), "");
}

TEST(GeometryRegistrationVerdict, ASweepTurnedRoundFails) {
    STIPPLE_NEEDS_DATA("scans/kitti");
    const PointCloud sweep = load_scan(*data_file("scans/kitti/000008.bin"));
    const IcpResult found = geometry::icp(sweep, sweep, {}, geometry::rotation_about({0, 0, 1}, M_PI));
    EXPECT_EQ(found.stop, geometry::IcpStop::too_few);
    const RegistrationVerdict verdict = geometry::judge(found);
    EXPECT_EQ(verdict.state, RegistrationState::failed);
    EXPECT_TRUE(contains(verdict.text(), "too little overlap: 0 pairs")) << verdict.text();
    EXPECT_EQ(verdict_of(sweep, sweep, geometry::rotation_about({0, 0, 1}, 0.05)).text(), "");
}

TEST(GeometryRegistrationVerdict, DenseAndSparseSamplesAreBelievedInTheirPlaceOnly) {
    for (int64_t n : {1000, 4000, 30000}) {
        SCOPED_TRACE(n);
        const PointCloud source = corner(n, 1), target = corner(n, 2);
        EXPECT_EQ(verdict_of(source, target, geometry::rotation_about({1, 1, 0}, 0.1)).text(), "");
        const RigidTransform wrong = geometry::rotation_about({1, 2, 3}, 2, {0.7, 0.4, 0.3});
        const IcpResult found = geometry::icp(source, target, {}, wrong);
        ASSERT_GT(displacement(source, found.transform, {}).rms, 0.2);
        EXPECT_NE(geometry::judge(found).state, RegistrationState::good);
    }
}

TEST(GeometryRegistrationVerdict, LimitsAreTheCallers) {
    IcpResult result;
    result.stop = geometry::IcpStop::converged;
    result.fitness = 0.04;
    result.pairs = 400;
    RegistrationVerdict verdict = geometry::judge(result);
    EXPECT_EQ(verdict.state, RegistrationState::failed);
    EXPECT_EQ(verdict.text(), "fitness 0.040 is below 0.050");
    geometry::RegistrationLimits limits;
    limits.min_fitness = 0;
    verdict = geometry::judge(result, limits);
    EXPECT_EQ(verdict.state, RegistrationState::doubtful);
    EXPECT_EQ(verdict.text(), "little overlap: 4 % of the source has a neighbour in the target");
    result.fitness = 0.9;
    result.stop = geometry::IcpStop::iterations;
    result.iterations = 110;
    result.undetermined = 3;
    EXPECT_EQ(geometry::judge(result).text(),
              "did not converge in 110 iterations; 3 of 6 directions of motion are not determined by the points: not "
              "moved along them");
    // A plane z = 0 of size 2 by 4, and a tube of radius 0.5 along x.
    result.stop = geometry::IcpStop::converged;
    const auto diagonal = [](const geometry::Vector3& turns, const geometry::Vector3& shifts) {
        std::array<std::array<double, 6>, 6> information = {};
        for (int i = 0; i < 3; ++i) information[i][i] = turns[i], information[3 + i][3 + i] = shifts[i];
        return information;
    };
    result.information = diagonal({133, 33, 0}, {0, 0, 100});
    const std::string plane = geometry::undetermined_text(result);
    EXPECT_TRUE(contains(plane, "turns about (0.00, 0.00, 1.00)")) << plane;
    EXPECT_TRUE(contains(plane, "shifts along (1.00, 0.00, 0.00)")) << plane;
    EXPECT_TRUE(contains(plane, "shifts along (0.00, 1.00, 0.00)")) << plane;
    result.undetermined = 2;
    result.information = diagonal({0, 40, 40}, {0, 50, 50});
    EXPECT_EQ(geometry::undetermined_text(result),
              "2 of 6 directions of motion are not determined by the points (turns about (1.00, 0.00, 0.00), shifts "
              "along (1.00, 0.00, 0.00)): not moved along them");
    result.information = {};
    result.stop = geometry::IcpStop::converged;
    result.undetermined = 0;
    result.rmse = 0.005;
    result.evidence = {0.01, 0.1, 579, 1000, 0.9};
    EXPECT_EQ(geometry::judge(result).state, RegistrationState::doubtful);
    result.evidence.close = 580;
    EXPECT_EQ(geometry::judge(result).state, RegistrationState::good);
    result.evidence = {0.1, 0.1, 1000, 1000, 0.23};  // too sparse for distances to tell
    EXPECT_EQ(geometry::judge(result).state, RegistrationState::doubtful);
    result.rmse = 0.0009;  // the same points twice: rounding runs anywhere
    EXPECT_EQ(geometry::judge(result).state, RegistrationState::good);
    result.rmse = 0.005;
    result.evidence.across = 0.2;
    EXPECT_EQ(geometry::judge(result).state, RegistrationState::good);
}

}  // namespace
}  // namespace stipple::test
