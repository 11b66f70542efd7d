// The procedural scene that other tests train and render: it must be what its header says.
#include "tests/support/analytic_scene.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stipple::test {
namespace {

TEST(AnalyticScene, LiesWithinItsCubeAndDepths) {
    const radiance::Scene scene = analytic_scene(24, 3, 2, 1);
    ASSERT_EQ(scene.train.size(), 3u);
    ASSERT_EQ(scene.test.size(), 2u);
    int hits = 0;
    for (const auto& photograph : scene.train) {
        const auto& camera = photograph.camera;
        const auto& m = camera.to_world;
        EXPECT_NEAR(std::hypot(m[3], m[7], m[11]), kAnalyticDistance, 1e-5);
        for (int y = 0; y < 24; ++y)
            for (int x = 0; x < 24; ++x) {
                const double depth = analytic_depth(camera, x, y);
                if (!std::isfinite(depth)) continue;
                ++hits;
                ASSERT_GT(depth, kAnalyticNear);
                ASSERT_LT(depth, kAnalyticFar);
                const double a = (x + 0.5 - camera.cx) / camera.fx, b = -(y + 0.5 - camera.cy) / camera.fy;
                Vec3d p;
                for (int axis = 0; axis < 3; ++axis) {
                    const float* row = m.data() + 4 * axis;
                    p[axis] = row[3] + depth * (row[0] * a + row[1] * b - row[2]);
                    ASSERT_LT(std::abs(p[axis]), 1.2);
                }
                ASSERT_NEAR(analytic_distance(p), 0, 1e-4);
                ASSERT_GT(photograph.pixels.at(x, y)[3], 0);
            }
    }
    EXPECT_GT(hits, 300);
}

TEST(AnalyticScene, HasEdgesEmptyCornersAndSeeds) {
    const radiance::Scene scene = analytic_scene(32, 2, 1, 1), other = analytic_scene(32, 2, 1, 2);
    const Image& pixels = scene.train[0].pixels;
    ASSERT_EQ(pixels.channels(), 4);
    EXPECT_EQ(pixels.at(0, 0)[3], 0);
    EXPECT_EQ(pixels.at(16, 16)[3], 255);
    int partial = 0;
    for (int y = 0; y < 32; ++y)
        for (int x = 0; x < 32; ++x) partial += pixels.at(x, y)[3] > 0 && pixels.at(x, y)[3] < 255;
    EXPECT_GT(partial, 10);
    EXPECT_NE(scene.train[0].camera.to_world, other.train[0].camera.to_world);
    EXPECT_NE(scene.train[0].camera.to_world, scene.test[0].camera.to_world);
}

}  // namespace
}  // namespace stipple::test
