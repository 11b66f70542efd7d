#include "stipple/picture/render/eye_dome.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "stipple/core/parallel.h"
#include "tests/picture/scene.h"

namespace stipple::picture {
namespace {

constexpr int64_t kSide = 40;
constexpr int kReach = 8;
constexpr float kPixel = 0.01f;

template <class Depth>
Array<float, 2> depth_map(const Depth& depth_at) {
    Array<float, 2> depths({kSide, kSide});
    for (int64_t y = 0; y < kSide; ++y)
        for (int64_t x = 0; x < kSide; ++x) depths.data()[y * kSide + x] = depth_at(x, y);
    return depths;
}

float light_at(const Array<float, 2>& depths, int64_t x, int64_t y) {
    return eye_dome_light(depths, x, y, depths.data()[y * kSide + x], kPixel, kReach);
}

TEST(EyeDome, PlanesAreBrightAtAnyTilt) {
    for (float slope : {0.f, 1.f, -3.f, 20.f}) {
        const auto depths = depth_map([&](int64_t x, int64_t y) {
            return 20 + slope * kPixel * static_cast<float>(x) - 2 * slope * kPixel * static_cast<float>(y);
        });
        for (int64_t x = kReach; x < kSide - kReach; ++x) EXPECT_FLOAT_EQ(light_at(depths, x, 20), 1) << slope;
    }
}

TEST(EyeDome, WhatLiesBehindAnOutlineIsDark) {
    const auto depths = depth_map([](int64_t x, int64_t) { return x < 20 ? 2.f : 4.f; });
    for (int64_t x = 0; x < 20; ++x) EXPECT_FLOAT_EQ(light_at(depths, x, 20), 1) << x;
    EXPECT_LT(light_at(depths, 20, 20), 0.7f);
    for (int64_t x = 20; x < 20 + kReach; ++x) {
        EXPECT_LE(light_at(depths, x, 20), light_at(depths, x + 1, 20)) << x;
        EXPECT_GE(light_at(depths, x, 20), 0.36f);
    }
    EXPECT_FLOAT_EQ(light_at(depths, 20 + kReach + 1, 20), 1);
}

TEST(EyeDome, HolesAndTheBackgroundAreNoOutlines) {
    const float nothing = std::numeric_limits<float>::infinity();
    const auto hole = depth_map([](int64_t x, int64_t y) { return x == 20 && y == 20 ? 4.f : 2.f; });
    EXPECT_FLOAT_EQ(light_at(hole, 20, 20), 1);
    const auto lone = depth_map([&](int64_t x, int64_t y) { return x == 20 && y == 20 ? 4.f : nothing; });
    EXPECT_FLOAT_EQ(light_at(lone, 20, 20), 1);
    const auto corner = depth_map([&](int64_t x, int64_t y) { return x == 0 && y == 0 ? 4.f : nothing; });
    EXPECT_FLOAT_EQ(light_at(corner, 0, 0), 1);
    // Two lone points, one behind the other.
    const auto two = depth_map([&](int64_t x, int64_t y) {
        return y != 20 ? nothing : x == 20 ? 4.f : x == 22 ? 2.f : nothing;
    });
    EXPECT_LT(light_at(two, 20, 20), 0.9f);
    EXPECT_FLOAT_EQ(light_at(two, 22, 20), 1);
}

PointCloud flat_scene(int64_t n) {
    PointCloud cloud = sphere_cloud(n, 10);
    for (int64_t i = 0; i < n; ++i) cloud.positions.data()[3 * i + 2] *= 0.2f;
    return cloud;
}

TEST(EyeDome, ScenesAreWideAndWithoutNormals) {
    EXPECT_FALSE(is_scene(sphere_cloud(500, 3), UpAxis::z));
    PointCloud scene = flat_scene(500);
    EXPECT_TRUE(is_scene(scene, UpAxis::z));
    EXPECT_FALSE(is_scene(scene, UpAxis::y));
    for (int64_t i = 0; i < 5; ++i) scene.positions.data()[3 * i + 2] = i ? 1e30f : NAN;  // strays
    EXPECT_TRUE(is_scene(scene, UpAxis::minus_z));
    add_attribute<float>(scene, "normal", 3, std::vector<float>(1500, 1));
    EXPECT_FALSE(is_scene(scene, UpAxis::z));
    EXPECT_FALSE(is_scene(PointCloud(), UpAxis::z));
    EXPECT_FALSE(is_scene(cloud_of({{NAN, 0, 0}, {1, 2, 3}, {1, INFINITY, 3}, {0, 0, 0}}), UpAxis::z));
    PointCloud airborne = sphere_cloud(500, 3);
    airborne.facts.las = std::make_shared<const LasFacts>();
    EXPECT_TRUE(is_scene(airborne, UpAxis::z));
}

TEST(EyeDome, DrawnForScenesAndOnDemandTheSameForAnyNumberOfThreads) {
    const PointCloud scene = flat_scene(4000), shape = sphere_cloud(4000, 1);
    for (const auto& [cloud, automatic] : {std::pair{&scene, true}, {&shape, false}}) {
        FigureStyle style;
        style.panel_width = style.panel_height = 200;
        const Image chosen = draw_cloud(*cloud, style);
        style.eye_dome = EyeDome::off;
        const Image off = draw_cloud(*cloud, style);
        style.eye_dome = EyeDome::on;
        const Image on = draw_cloud(*cloud, style);
        EXPECT_FALSE(same_pixels(on, off));
        EXPECT_TRUE(same_pixels(chosen, automatic ? on : off));
        int64_t brighter = 0;
        for (int64_t i = 0; i < on.pixels.elements(); ++i) brighter += on.pixels.data()[i] > off.pixels.data()[i];
        EXPECT_EQ(brighter, 0);
        for (int threads : {1, 2, 5}) {
            set_threads(threads);
            EXPECT_TRUE(same_pixels(on, draw_cloud(*cloud, style))) << threads;
        }
        set_threads(0);
    }
}

}  // namespace
}  // namespace stipple::picture
