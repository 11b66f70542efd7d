#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/io/format.h"
#include "stipple/tasks/upsample.h"
#include "stipple/tasks/upsampling_study/ring_test.h"
#include "stipple/tasks/weights.h"
#include "tests/support/sweep.h"

namespace stipple::tasks {
namespace {

using test::sweep_of_room;

Upsampler make_shipped() {
    return {load_model_or_engine(std::string(STIPPLE_SOURCE_DIR) + "/weights/" + kUpsamplerWeights + ".safetensors"),
            {.device = "cpu"}};
}

/// How far a point lies from the nearest of floor, ceiling and walls.
double off_the_room(const PointCloud& cloud, int64_t i, const test::SweepRoom& room) {
    const double x = std::abs(cloud.world(i, 0)), y = std::abs(cloud.world(i, 1)), z = cloud.world(i, 2);
    return std::min(
        {std::abs(x - room.half_x), std::abs(y - room.half_y), std::abs(z - room.floor), std::abs(z - room.ceiling)});
}

TEST(BetweenRings, PlanesStayPlanes) {
    Upsampler upsampler = make_shipped();
    const test::SweepRoom room;
    const PointCloud sweep = sweep_of_room(room);
    for (const double ratio : {1.4, 2.0, 4.0}) {
        const Upsampled made = upsample(upsampler, sweep, {.ratio = ratio});
        EXPECT_EQ(made.cloud.size(), std::llround(ratio * static_cast<double>(sweep.size())));
        EXPECT_EQ(made.rings, room.rings);
        EXPECT_EQ(made.measured, sweep.size());
        const auto fresh = static_cast<double>(made.cloud.size() - sweep.size());
        EXPECT_GT(static_cast<double>(made.between), 0.6 * fresh);
        const View<const float, 2> intensity = find(made.cloud.attributes, "intensity")->as<float>();
        int64_t off = 0;
        for (int64_t i = sweep.size(); i < made.cloud.size(); ++i) {
            off += off_the_room(made.cloud, i, room) > 1e-4;  // where wall and floor meet, chords cut the corner
            EXPECT_NEAR(intensity(i, 0), 100 + 10 * made.cloud.positions.data()[3 * i], 1e-3);
        }
        EXPECT_LT(static_cast<double>(off), 0.02 * fresh);
    }
}

TEST(BetweenRings, NothingHangsBetweenForegroundAndBackground) {
    Upsampler upsampler = make_shipped();
    const test::SweepRoom room{.pillar = 0.6};
    const PointCloud sweep = sweep_of_room(room);
    const Upsampled made = upsample(upsampler, sweep, {.ratio = 2});
    ASSERT_EQ(made.rings, room.rings);
    int64_t hanging = 0;
    for (int64_t i = 0; i < made.cloud.size(); ++i)
        hanging += off_the_room(made.cloud, i, room) > 0.1 && std::abs(made.cloud.world(i, 0) - 3) > 0.1;
    EXPECT_EQ(hanging, 0);
}

TEST(BetweenRings, WideGapsAreFilledOnRequest) {
    Upsampler upsampler = make_shipped();
    const PointCloud sweep = sweep_of_room({.rings = 16, .steps = 1440});
    const Upsampled kept = upsample(upsampler, sweep, {.ratio = 2}),
                    some = upsample(upsampler, sweep, {.ratio = 2, .holes = Holes::fill, .hole_size = 1}),
                    filled = upsample(upsampler, sweep, {.ratio = 2, .holes = Holes::fill});
    EXPECT_GT(filled.between, some.between);
    EXPECT_LT(filled.dropped, kept.dropped);
    EXPECT_GT(some.between, kept.between);
    const PointCloud small = sweep_of_room({.rings = 12, .steps = 90, .highest = 30, .lowest = -60});
    EXPECT_EQ(upsample(upsampler, small, {.ratio = 2}).rings, 12);
    EXPECT_EQ(upsample(upsampler, small, {.ratio = 2, .rings = Rings::ignore}).rings, 0);
}

TEST(BetweenRings, ThreadsDoNotMatter) {
    Upsampler upsampler = make_shipped();
    const PointCloud sweep = sweep_of_room({});
    const int before = threads();
    set_threads(1);
    const PointCloud one = upsample(upsampler, sweep, {.ratio = 2}).cloud;
    set_threads(before);
    const PointCloud many = upsample(upsampler, sweep, {.ratio = 2}).cloud;
    EXPECT_TRUE(std::equal(one.positions.span().begin(), one.positions.span().end(), many.positions.span().begin()));
}

}  // namespace

namespace study {
namespace {

TEST(RingTest, EverySecondRingIsLeftOut) {
    const test::SweepRoom room;
    const RingTest test = leave_out_rings(test::sweep_of_room(room));
    EXPECT_EQ(test.halved.size(), test.sweep.size() / 2);
    for (int64_t i = 0; i < test.sweep.size(); ++i) EXPECT_EQ(test.is_left[static_cast<size_t>(i)], i / room.steps % 2);
    EXPECT_ANY_THROW(leave_out_rings(PointCloud(100)));
    EXPECT_ANY_THROW(leave_out_rings(test::sweep_of_room({.rings = 12})));
}

TEST(RingTest, ErrorsAreThoseOfMovedPoints) {
    // What was left out comes back, 4 cm farther away on the walls: they are the truth but for that.
    const test::SweepRoom room;
    const RingTest test = leave_out_rings(test::sweep_of_room(room));
    const RingScores exact = measure_by_rings(test.sweep, test);
    EXPECT_EQ(exact.made, test.sweep.size() / 2);
    EXPECT_NEAR(exact.at_left, 100, 1e-9);
    EXPECT_LT(exact.error_left, 0.2);
    EXPECT_EQ(exact.invented, 0);
    EXPECT_EQ(exact.cover, 0);
    EXPECT_EQ(exact.intensity, 0);
    PointCloud moved = test.sweep.clone();
    for (int64_t i = 0; i < moved.size(); ++i)
        if (test.is_left[static_cast<size_t>(i)] && std::abs(std::abs(moved.world(i, 0)) - room.half_x) < 1e-3)
            moved.positions.data()[3 * i] *= 1.005f;
    const RingScores scores = measure_by_rings(moved, test);
    double share = 0, count = 0;
    for (int64_t i = 0; i < test.sweep.size(); ++i)
        if (test.is_left[static_cast<size_t>(i)]) {
            count += 1;
            share += std::abs(std::abs(test.sweep.world(i, 0)) - room.half_x) < 1e-3;
        }
    EXPECT_NEAR(scores.error_left - exact.error_left, 4 * share / count, 0.4);
    EXPECT_NEAR(scores.error_left, scores.error_all, 1e-9);
}

/// Sweeps that nothing was tuned on.
TEST(RingTest, TheDefaultFillsWhatMidpointsThicken) {
    const std::string root = STIPPLE_SOURCE_DIR;
    Upsampler ours(load_model_or_engine(root + "/weights/" + kUpsamplerWeights + ".safetensors"), {.device = "cpu"}),
        midpoints;
    for (const char* name : {"street", "yard"}) {
        io::Warnings warnings;
        const RingTest test =
            leave_out_rings(io::load_cloud(root + "/examples/data/scans/" + name + ".ply", {}, warnings));
        const RingScores scores = measure_by_rings(upsample(ours, test.halved, {.ratio = 2}).cloud, test),
                         plain = measure_by_rings(upsample(midpoints, test.halved, {.ratio = 2}).cloud, test);
        // Points that midpoints put there are few, or none, and lie where the rings are close: all are compared.
        EXPECT_LE(scores.error_all, 0.9 * plain.error_all) << name;
        EXPECT_LE(scores.error_left, 0.8 * plain.error_all) << name;
        EXPECT_LE(scores.unsupported, plain.unsupported + 0.1) << name;
        EXPECT_LE(scores.cover, plain.cover) << name;
        EXPECT_GT(scores.at_left, 2 * plain.at_left) << name;
    }
}

}  // namespace
}  // namespace study
}  // namespace stipple::tasks
