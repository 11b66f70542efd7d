#include "stipple/geometry/global_registration.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/registration/consensus.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/geometry/scans.h"
#include "tests/support/data_sets.h"

namespace stipple::test {
namespace {

using geometry::GlobalResult;
using geometry::MatchedPair;
using geometry::register_globally;
using geometry::RigidTransform;
using geometry::Vector3;

double degrees_between(const RigidTransform& a, const RigidTransform& b) {
    return geometry::rotation_angle(geometry::inverse(a) * b) * 180 / M_PI;
}

TEST(GeometryConsensus, FindsThePoseAmongWrongMatches) {
    const RigidTransform truth = any_pose(1, 2);
    const Rng rng(2);
    std::vector<MatchedPair> pairs;
    for (int i = 0; i < 1000; ++i) {
        const auto at = static_cast<uint64_t>(16 * i);
        const auto vector = [&](uint64_t more) -> Vector3 {
            return {rng.normal(at + more), rng.normal(at + more + 1), rng.normal(at + more + 2)};
        };
        const auto unit_vector = [&](uint64_t more) {
            Vector3 v = vector(more);
            const double length = std::hypot(v[0], v[1], v[2]);
            for (double& number : v) number /= length;
            return v;
        };
        MatchedPair pair{vector(0), vector(3), unit_vector(6), unit_vector(9)};
        if (i % 25 == 0) {  // four in a hundred are right, to the noise
            pair.q = truth(pair.p);
            for (double& number : pair.q) number += 0.01 * rng.normal(at + 12);
            pair.nq = truth.rotate(pair.np);
        }
        pairs.push_back(pair);
    }
    geometry::ConsensusOptions options;
    options.tolerance = 0.05;
    const std::vector<geometry::ConsensusPose> poses = geometry::consensus_poses(pairs, options);
    ASSERT_FALSE(poses.empty());
    EXPECT_LT(degrees_between(poses[0].transform, truth), 1);
    EXPECT_GE(poses[0].inliers, 38);
    EXPECT_TRUE(geometry::consensus_poses({pairs.begin(), pairs.begin() + 2}, options).empty());
}

TEST(GeometryGlobalRegistration, FindsAnyPoseOfABody) {
    for (const int64_t n : {500, 4000, 40000})
        for (const uint64_t seed : {1, 2}) {
            SCOPED_TRACE(std::to_string(n) + " points, seed " + std::to_string(seed));
            const RigidTransform truth = any_pose(seed, 100);
            const PointCloud source = lumpy_body(n, seed, 0.005);
            const PointCloud target = geometry::transformed(lumpy_body(n, seed + 10, 0.005), truth);
            const GlobalResult found = register_globally(source, target);
            ASSERT_FALSE(found.poses.empty());
            EXPECT_LT(degrees_between(found.poses[0].transform, truth), n < 1000 ? 5 : 2);
            EXPECT_LT(displacement(source, found.poses[0].transform, truth).rms, 0.1);
            EXPECT_GT(found.confidence(), 0.5);
        }
}

TEST(GeometryGlobalRegistration, FindsPartsThatOverlapByHalf) {
    const PointCloud body = lumpy_body(20000, 4), again = lumpy_body(20000, 5);
    const RigidTransform truth = any_pose(8, 5);
    const PointCloud source = part_of(body, {1, 0, 0}, -0.3);
    const PointCloud target = geometry::transformed(part_of(again, {-1, 0.3, 0}, -0.5), truth);
    const GlobalResult found = register_globally(source, target);
    ASSERT_FALSE(found.poses.empty());
    EXPECT_LT(degrees_between(found.poses[0].transform, truth), 2);
    EXPECT_GT(found.confidence(), 0.5);
}

TEST(GeometryGlobalRegistration, DoubtsSymmetryAndDifferentThings) {
    // Two samples of a box: four poses of it fit alike.
    const Rng rng(3);
    const auto box_of = [&](uint64_t stream) {
        PointCloud box(6000);
        const Rng places(3, stream);
        for (int64_t i = 0; i < box.size(); ++i) {
            const double size[3] = {1, 0.6, 0.3};
            const auto at = static_cast<uint64_t>(4 * i);
            const int flat = static_cast<int>(i % 3);
            for (int axis = 0; axis < 3; ++axis) {
                const double place =
                    axis == flat ? (i % 2 ? 1 : -1) : 2 * places.uniform(at + static_cast<uint64_t>(axis)) - 1;
                box.positions.data()[3 * i + axis] = static_cast<float>(size[axis] * place);
            }
        }
        return box;
    };
    const GlobalResult turned = register_globally(box_of(1), geometry::transformed(box_of(2), any_pose(5, 1)));
    ASSERT_GT(turned.poses.size(), 1u);
    EXPECT_LT(turned.confidence(), geometry::kGood);
    EXPECT_GT(turned.other(), 0.3);
    // One body against a plane with bumps.
    PointCloud plane(4000);
    for (int64_t i = 0; i < plane.size(); ++i) {
        const auto at = static_cast<uint64_t>(2 * i);
        const double x = 3 * rng.uniform(at) - 1.5, y = 3 * rng.uniform(at + 1) - 1.5;
        const double z = 0.1 * std::sin(9 * x) * std::sin(8 * y);
        for (int axis = 0; axis < 3; ++axis)
            plane.positions.data()[3 * i + axis] = static_cast<float>(axis == 0 ? x : axis == 1 ? y : z);
    }
    EXPECT_LT(register_globally(lumpy_body(4000, 1), plane).confidence(), 0.4);
}

TEST(GeometryGlobalRegistration, IsTheSameOnAnyNumberOfThreads) {
    const PointCloud source = part_of(lumpy_body(6000, 1), {0, 1, 0}, -0.4);
    const PointCloud target = geometry::transformed(lumpy_body(6000, 2), any_pose(3, 1));
    const int before = threads();
    set_threads(1);
    const GlobalResult one = register_globally(source, target);
    set_threads(3);
    const GlobalResult three = register_globally(source, target);
    set_threads(before);
    ASSERT_EQ(one.poses.size(), three.poses.size());
    for (size_t i = 0; i < one.poses.size(); ++i) {
        EXPECT_EQ(one.poses[i].transform, three.poses[i].transform);
        EXPECT_EQ(one.poses[i].support.support, three.poses[i].support.support);
    }
}

TEST(GeometryGlobalRegistration, LittleAndHostileInputs) {
    const PointCloud body = lumpy_body(100, 1);
    EXPECT_TRUE(register_globally(PointCloud(0), body).poses.empty());
    EXPECT_TRUE(register_globally(body, PointCloud(0)).poses.empty());
    PointCloud none(50), one(50), line(50);
    std::fill_n(none.positions.data(), 150, NAN);
    std::fill_n(one.positions.data(), 150, 1.0f);
    for (int i = 0; i < 150; ++i) line.positions.data()[i] = static_cast<float>(i / 3);
    for (const PointCloud* cloud : {&none, &one, &line}) {
        EXPECT_TRUE(register_globally(*cloud, body).poses.empty());
        EXPECT_TRUE(register_globally(body, *cloud).poses.empty());
        EXPECT_EQ(register_globally(*cloud, *cloud).confidence(), 0);
    }
    PointCloud gaps = lumpy_body(3000, 1);
    for (int64_t i = 0; i < 3000; i += 7) gaps.positions.data()[3 * i] = i % 2 ? NAN : INFINITY;
    const GlobalResult found = register_globally(gaps, lumpy_body(3000, 2));
    ASSERT_FALSE(found.poses.empty());
    EXPECT_LT(degrees_between(found.poses[0].transform, {}), 2);
    geometry::GlobalOptions options;
    options.voxel = -1;
    EXPECT_THROW(register_globally(body, body, options), Error);
    options = {};
    options.feature_radii = {0};
    EXPECT_THROW(register_globally(body, body, options), Error);
    options = {};
    options.most_matches = 1 << 20;
    EXPECT_THROW(register_globally(body, body, options), Error);
}

TEST(GeometryGlobalRegistration, OriginsAreNotLost) {
    PointCloud source = lumpy_body(4000, 1), target = lumpy_body(4000, 2);
    source.origin = {500000, 4000000, 100};
    target.origin = {499000, 4000500, 90};
    const GlobalResult found = register_globally(source, target);
    ASSERT_FALSE(found.poses.empty());
    const Vector3 at = found.poses[0].transform(source.origin);
    for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(at[axis], target.origin[axis], 0.1);
    EXPECT_LT(degrees_between(found.poses[0].transform, {}), 2);
}

TEST(GeometryGlobalRegistration, BunnyScansAQuarterTurnApart) {
    STIPPLE_NEEDS_DATA("scans/bunny");
    const std::vector<Scan> scans = bunny_scans(*data_file("."));
    const RigidTransform truth = geometry::inverse(scans[0].pose) * scans[2].pose;
    const GlobalResult found = register_globally(scans[2].cloud, scans[0].cloud);
    ASSERT_FALSE(found.poses.empty());
    EXPECT_LT(displacement(scans[2].cloud, found.poses[0].transform, truth).rms, 0.001);
    EXPECT_GT(found.confidence(), 0.5);
    // Front and back share next to nothing: no pose is believed.
    EXPECT_LT(register_globally(scans[3].cloud, scans[0].cloud).confidence(), 0.4);
}

}  // namespace
}  // namespace stipple::test
