#include "stipple/geometry/pose_graph.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "tests/geometry/registration/shapes.h"

namespace stipple::test {
namespace {

using geometry::PoseEdge;
using geometry::PoseGraphResult;
using geometry::RigidTransform;

/// A ring of scans with edges to the next and the one after, measured with a little noise.
struct Ring {
    std::vector<RigidTransform> truth;  // to the first
    std::vector<PoseEdge> edges;
};
PoseEdge measured(const Ring& ring, int32_t from, int32_t to, double noise, uint64_t seed) {
    PoseEdge edge;
    edge.from = from;
    edge.to = to;
    const Rng rng(seed, 3);
    RigidTransform shake =
        geometry::rotation_about({rng.normal(0), rng.normal(1), rng.normal(2)}, noise * rng.normal(3));
    for (int axis = 0; axis < 3; ++axis) shake.translation[axis] = noise * rng.normal(static_cast<uint64_t>(4 + axis));
    edge.transform = shake * geometry::inverse(ring.truth[to]) * ring.truth[from];
    for (int i = 0; i < 6; ++i) edge.information[i][i] = i < 3 ? 0.5 : 1;
    return edge;
}
Ring ring_of(int32_t n, double noise) {
    Ring ring;
    for (int32_t i = 0; i < n; ++i)
        ring.truth.push_back(i == 0 ? RigidTransform{} : any_pose(static_cast<uint64_t>(i), 3));
    for (int32_t i = 0; i < n; ++i)
        for (const int32_t step : {1, 2})
            ring.edges.push_back(measured(ring, i, (i + step) % n, noise, static_cast<uint64_t>(10 * i + step)));
    return ring;
}

double worst_off(const Ring& ring, const PoseGraphResult& found) {
    double worst = 0;
    for (size_t i = 0; i < ring.truth.size(); ++i) {
        const RigidTransform off = geometry::inverse(ring.truth[i]) * found.poses[i];
        const geometry::Vector3& t = off.translation;
        worst = std::max({worst, geometry::rotation_angle(off), std::hypot(t[0], t[1], t[2])});
    }
    return worst;
}

TEST(GeometryPoseGraph, ExactEdgesGiveExactPoses) {
    const Ring ring = ring_of(8, 0);
    const PoseGraphResult found = geometry::optimise_poses(8, ring.edges, {.tolerance = 0.05});
    EXPECT_LT(worst_off(ring, found), 1e-9);
    EXPECT_LT(found.rms, 1e-9);
    for (const uint8_t placed : found.is_placed) EXPECT_TRUE(placed);
}

TEST(GeometryPoseGraph, LoopsSpreadTheNoise) {
    const Ring ring = ring_of(10, 0.01);
    const PoseGraphResult found = geometry::optimise_poses(10, ring.edges, {.tolerance = 0.2});
    EXPECT_LT(worst_off(ring, found), 0.06);
    for (const PoseGraphResult::Edge& edge : found.edges) EXPECT_FALSE(edge.is_dropped);
    // No small motion of a pose makes the sum of squares smaller.
    const auto cost = [&](const std::vector<RigidTransform>& poses) {
        double sum = 0;
        for (const PoseEdge& edge : ring.edges) {
            const RigidTransform off =
                geometry::inverse(poses[edge.to]) * poses[edge.from] * geometry::inverse(edge.transform);
            const geometry::Vector3& t = off.translation;
            sum += 0.5 * std::pow(geometry::rotation_angle(off), 2) + t[0] * t[0] + t[1] * t[1] + t[2] * t[2];
        }
        return sum;
    };
    // Robust weights are not quite 1: what is least is another sum, and near.
    const double least = cost(found.poses);
    for (size_t node = 1; node < 10; ++node)
        for (int direction = 0; direction < 6; ++direction)
            for (const double way : {-0.004, 0.004}) {
                std::vector<RigidTransform> moved = found.poses;
                RigidTransform motion;
                const geometry::Vector3 axis = {direction == 0 ? 1.0 : 0, direction == 1 ? 1.0 : 0,
                                                direction == 2 ? 1.0 : 0};
                if (direction < 3) motion = geometry::rotation_about(axis, way);
                if (direction >= 3) motion.translation[direction - 3] = way;
                moved[node] = motion * moved[node];
                EXPECT_GT(cost(moved), least - 1e-6) << node << " " << direction;
            }
}

TEST(GeometryPoseGraph, WrongEdgesAreDropped) {
    Ring ring = ring_of(9, 0.003);
    const size_t right = ring.edges.size();
    for (int32_t i = 0; i < 5; ++i) {
        PoseEdge wrong = measured(ring, i, i + 4, 0, 1);
        wrong.transform = any_pose(static_cast<uint64_t>(100 + i), 2);
        wrong.strength = 10;  // and sure of themselves
        ring.edges.push_back(wrong);
    }
    const PoseGraphResult found = geometry::optimise_poses(9, ring.edges, {.tolerance = 0.05});
    EXPECT_LT(worst_off(ring, found), 0.02);
    for (size_t e = 0; e < ring.edges.size(); ++e) EXPECT_EQ(found.edges[e].is_dropped, e >= right) << e;
}

TEST(GeometryPoseGraph, WhatIsNotConnectedIsNotPlaced) {
    Ring ring = ring_of(5, 0);
    ring.edges = {measured(ring, 1, 2, 0, 1), measured(ring, 3, 2, 0, 2)};
    const PoseGraphResult found = geometry::optimise_poses(5, ring.edges, {.tolerance = 0.05});
    EXPECT_EQ(found.is_placed, (std::vector<uint8_t>{0, 1, 1, 1, 0}));
    EXPECT_EQ(found.poses[1], RigidTransform{});
    const RigidTransform wanted = geometry::inverse(ring.truth[1]) * ring.truth[3];
    EXPECT_LT(geometry::rotation_angle(geometry::inverse(wanted) * found.poses[3]), 1e-9);
    EXPECT_EQ(geometry::optimise_poses(3, {}, {.tolerance = 1}).is_placed, (std::vector<uint8_t>{1, 0, 0}));
    EXPECT_TRUE(geometry::optimise_poses(0, {}, {.tolerance = 1}).poses.empty());
    EXPECT_THROW(geometry::optimise_poses(2, ring.edges, {.tolerance = 1}), Error);
    EXPECT_THROW(geometry::optimise_poses(5, ring.edges, {.tolerance = 0}), Error);
    EXPECT_THROW(geometry::optimise_poses(501, {}, {.tolerance = 1}), Error);
}

}  // namespace
}  // namespace stipple::test
