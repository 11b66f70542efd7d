#include "stipple/geometry/pose_evidence.h"

#include <gtest/gtest.h>

#include "stipple/core/parallel.h"
#include "stipple/geometry/global_registration.h"
#include "stipple/geometry/primitives.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/geometry/simulated_scans.h"

namespace stipple::test {
namespace {

using geometry::evidence_of;
using geometry::judged_scan;
using geometry::PoseEvidence;
using geometry::RigidTransform;
using geometry::ThinScan;

/// A camera's view of the mesh from along -z.
PointCloud front_of(const Mesh& mesh, uint64_t seed) {
    DepthCamera camera;
    camera.width = camera.height = 120;
    camera.noise = 0.002;
    camera.view_degrees = 45;
    return depth_scan(mesh, geometry::MeshIndex(mesh), look_at({0.3, 0.2, -3}, {}, {0, 1, 0}), camera, seed);
}

PoseEvidence own_evidence(const Mesh& mesh, const RigidTransform& pose) {
    const ThinScan a = judged_scan(front_of(mesh, 1), 0.05, false), b = judged_scan(front_of(mesh, 2), 0.05, false);
    return evidence_of(a, b, pose, false);
}

TEST(GeometryPoseEvidence, SpeaksForTheTruePose) {
    const PointCloud source = lumpy_body(8000, 1, 0.003), target = lumpy_body(8000, 2, 0.003);
    const ThinScan a = judged_scan(source, 0.06, false), b = judged_scan(target, 0.06, false);
    const PoseEvidence right = evidence_of(a, b, {}, false);
    EXPECT_GT(right.overlap(), 0.95);
    EXPECT_GT(right.agreement(), 0.95);
    EXPECT_GT(right.stiffness, 0.01);
    EXPECT_LT(right.residual, 1.2);
    EXPECT_GT(right.sidedness, 0.95);
    EXPECT_GE(geometry::pose_confidence(right), geometry::kGood);
    for (const double degrees : {20.0, 90.0, 180.0}) {
        const PoseEvidence wrong = evidence_of(a, b, geometry::rotation_about({1, 2, 3}, degrees * M_PI / 180), false);
        EXPECT_LT(wrong.agreement(), right.agreement());
        EXPECT_LT(geometry::pose_confidence(wrong), geometry::kGood) << degrees;
    }
    // As good another pose takes it away; nothing has none.
    PoseEvidence twice = right;
    twice.other = 1;
    EXPECT_LT(geometry::pose_confidence(twice), geometry::pose_confidence(right));
    EXPECT_EQ(geometry::pose_confidence({}), 0);
    RigidTransform apart;
    apart.translation = {50, 0, 0};
    EXPECT_EQ(geometry::pose_confidence(evidence_of(a, b, apart, false)), 0);
}

TEST(GeometryPoseEvidence, ConfidenceIsThatOfTheFit) {
    // By the weights of the fit outside of this program, to four digits: a tenth more or less of any weight is seen.
    struct Row {
        double close, wide, even, overlap, stiffness, residual, spread;
        int64_t support;
        double through, inliers, rival, other, confidence;
    };
    constexpr Row kSearched[] = {{.62, .40, .30, .25, .030, .95, .66, 1800, .012, 40, 60, 0, .8805},
                                 {.80, .55, .50, .45, .060, 1.10, .80, 4000, .000, 25, 110, .1, .9091},
                                 {.70, .20, .25, .15, .010, .80, .55, 900, .030, 160, 30, .05, .8624},
                                 {.90, .85, .80, .90, .100, .70, 1.00, 6000, .000, 900, 20, .9, .5263}};
    constexpr Row kAlone[] = {{.75, .45, .25, .30, .020, .90, .60, 1500, .010, 0, 0, 0, .3560},
                              {.60, .30, .15, .20, .050, 1.20, .75, 2500, .000, 0, 0, 0, .4931},
                              {.85, .60, .35, .40, .002, .70, .50, 700, .020, 0, 0, 0, .0511}};
    const auto expect = [](const Row& row, double matches) {
        PoseEvidence evidence;
        evidence.forth.support = row.support;
        evidence.forth.points = 1000000;
        evidence.back.support = std::llround(1000 * row.overlap);
        evidence.back.points = 1000;
        evidence.close = row.close, evidence.wide = row.wide, evidence.even = row.even;
        evidence.stiffness = row.stiffness, evidence.residual = row.residual, evidence.spread = row.spread;
        evidence.through = row.through, evidence.inliers = row.inliers, evidence.rival = row.rival;
        evidence.other = row.other, evidence.matches = matches;
        EXPECT_NEAR(geometry::pose_confidence(evidence), row.confidence, 1e-3);
    };
    for (const Row& row : kSearched) expect(row, 4000);
    for (const Row& row : kAlone) expect(row, 0);
}

TEST(GeometryPoseEvidence, IsTheSameBothWaysAndOnAnyNumberOfThreads) {
    const ThinScan a = judged_scan(lumpy_body(3000, 1), 0.08, false), b = judged_scan(lumpy_body(5000, 2), 0.08, false);
    const RigidTransform pose = geometry::rotation_about({1, 0, 0}, 0.1);
    const PoseEvidence forth = evidence_of(a, b, pose, false), back = evidence_of(b, a, geometry::inverse(pose), false);
    EXPECT_DOUBLE_EQ(forth.overlap(), back.overlap());
    EXPECT_DOUBLE_EQ(forth.agreement(), back.agreement());
    const int before = threads();
    set_threads(3);
    const PoseEvidence three = evidence_of(a, b, pose, false);
    set_threads(before);
    EXPECT_EQ(geometry::pose_confidence(three), geometry::pose_confidence(forth));
    EXPECT_EQ(three.stiffness, forth.stiffness);
    EXPECT_EQ(three.residual, forth.residual);
}

TEST(GeometryPoseEvidence, WhatSlidesOrTurnsIsNotStiff) {
    const double plate = own_evidence(geometry::cube_mesh(2, 2, 0.01), {}).stiffness;
    const double ball = own_evidence(geometry::sphere_mesh(1, 4), {}).stiffness;
    std::vector<Mesh> boxes;
    boxes.push_back(geometry::cube_mesh(1.6, 0.5, 0.6));
    boxes.push_back(geometry::cube_mesh(0.4, 1.6, 1.2));
    Mesh step = joined(boxes);
    const RigidTransform tilt = geometry::rotation_about({1, 1, 0}, 0.7);
    for (int64_t i = 0; i < step.vertices.size(); ++i) {
        float* p = step.vertices.positions.data() + 3 * i;
        const geometry::Vector3 q = tilt({p[0], p[1], p[2]});
        for (int axis = 0; axis < 3; ++axis) p[axis] = static_cast<float>(q[axis]);
    }
    const double corners = own_evidence(step, {}).stiffness;
    EXPECT_LT(plate, 1e-3);
    EXPECT_LT(ball, 2e-3);
    EXPECT_GT(corners, 10 * ball);
}

TEST(GeometryPoseEvidence, StraysAreLeftOutAndGuessedSidesForgiven) {
    PointCloud clean = lumpy_body(6000, 1), dusty = clean.clone();
    const Rng rng(5);
    for (int64_t i = 0; i < 60; ++i)
        for (int axis = 0; axis < 3; ++axis)
            dusty.positions.data()[300 * i + axis] = 6 * rng.uniform(static_cast<uint64_t>(3 * i + axis)) - 3;
    const ThinScan a = judged_scan(clean, 0.08, false), b = judged_scan(dusty, 0.08, false);
    EXPECT_GT(geometry::thin_scan(dusty, 0.08).size(), a.size() + 30);
    EXPECT_NEAR(static_cast<double>(b.size()), static_cast<double>(a.size()), 10);
    // Sparse clouds, in which nothing has neighbours, are kept.
    EXPECT_EQ(judged_scan(lumpy_body(50, 1), 0.01, false).size(), 50);
    EXPECT_EQ(judged_scan(PointCloud(0), 0.1, false).size(), 0);
    ThinScan turned = judged_scan(clean, 0.08, false);
    for (int64_t i = 0; i < turned.size(); ++i)  // half of it the other way
        if (turned.points.data()[3 * i] > 0)
            for (int axis = 0; axis < 3; ++axis) turned.normals.data()[3 * i + axis] *= -1;
    EXPECT_LT(geometry::judged_support(turned, a, {}, true).overlap(), 0.7);
    EXPECT_GT(geometry::judged_support(turned, a, {}, false).overlap(), 0.99);
    EXPECT_LT(evidence_of(turned, a, {}, false).sidedness, 0.5);
}

TEST(GeometrySimulatedScans, SeeWhatIsThere) {
    const Mesh ball = geometry::sphere_mesh(1, 5);
    const PointCloud seen = front_of(ball, 3);
    ASSERT_GT(seen.size(), 3000);
    // In the frame of the camera, whose eye is 3.02 from the middle.
    const double distance = std::hypot(0.3, 0.2, 3.0);
    for (int64_t i = 0; i < seen.size(); ++i) {
        const double z = seen.world(i, 2) - distance;
        EXPECT_NEAR(std::hypot(seen.world(i, 0), seen.world(i, 1), z), 1, 0.02);
        EXPECT_LT(z, 0.01);
    }
    const Mesh room = furnished_room({}, 4);
    const SimulatedPair pair = room_pair(room, room, true, 2, 20, 0.5, true, 4);
    EXPECT_GT(pair.overlap, 0.3);
    EXPECT_GT(pair.source.size(), 10000);
}

TEST(GeometryGlobalRegistration, FindsFragmentsOfRooms) {
    int right = 0;
    std::vector<Mesh> things;
    things.push_back(geometry::torus_mesh());
    things.push_back(geometry::cone_mesh());
    things.push_back(geometry::sphere_mesh());
    for (const uint64_t seed : {1, 2, 3, 4}) {
        const Mesh room = furnished_room(things, seed);
        const SimulatedPair pair = room_pair(room, room, true, 2, 20, 0.5, true, seed);
        const geometry::GlobalResult found = geometry::register_globally(pair.source, pair.target);
        ASSERT_FALSE(found.poses.empty());
        const RigidTransform off = geometry::inverse(pair.truth) * found.poses[0].transform;
        const bool is_right = geometry::rotation_angle(off) < 3 * M_PI / 180;
        right += is_right;
        EXPECT_TRUE(is_right || found.confidence() < geometry::kGood) << seed;
    }
    EXPECT_GE(right, 3);
}

}  // namespace
}  // namespace stipple::test
