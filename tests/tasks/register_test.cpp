#include "stipple/tasks/register.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stipple/core/rng.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;
using test::contains;
using test::message_of;

/// Points on an uneven surface, so that no motion leaves it in place.
PointCloud hill(int64_t n) {
    PointCloud cloud(n * n);
    for (int64_t i = 0; i < n * n; ++i) {
        const auto x = static_cast<float>(i % n) / static_cast<float>(n),
                   y = static_cast<float>(i / n) / static_cast<float>(n);
        cloud.positions.view()(i, 0) = x;
        cloud.positions.view()(i, 1) = y;
        cloud.positions.view()(i, 2) = 0.3f * std::sin(5 * x) + 0.2f * std::cos(7 * y) * x;
    }
    return cloud;
}

RigidTransform small_motion() {
    RigidTransform motion;
    const double angle = 0.05;
    motion.rotation = {{{std::cos(angle), -std::sin(angle), 0}, {std::sin(angle), std::cos(angle), 0}, {0, 0, 1}}};
    motion.translation = {0.02, -0.01, 0.03};
    return motion;
}

TEST(Register, FindsASmallMotion) {
    const PointCloud source = hill(50), target = geometry::transformed(source, small_motion());
    const Registration found = register_clouds(source, target, {});
    EXPECT_FALSE(found.failure);
    EXPECT_EQ(found.verdict.text(), "");
    EXPECT_EQ(found.levels.size(), 2u);
    const PoseError error = pose_error(found.found.transform, small_motion(), source);
    EXPECT_LT(error.degrees, 0.1);
    EXPECT_LT(error.rms, 1e-3);
}

TEST(Register, OptionsReachTheLevels) {
    const PointCloud cloud = hill(20);
    RegisterOptions options;
    options.scale = 2;
    options.iterations = 4;
    const Registration scaled = register_clouds(cloud, cloud, options);
    ASSERT_EQ(scaled.levels.size(), 2u);
    EXPECT_DOUBLE_EQ(scaled.levels[0].max_distance, 1);
    for (const geometry::IcpLevel& level : scaled.levels) EXPECT_EQ(level.iterations, 4);
    options.icp.levels = levels_of({0.5, 0.1}, {0.1, 0});
    options.iterations = 0;
    const Registration given = register_clouds(cloud, cloud, options);
    ASSERT_EQ(given.levels.size(), 2u);
    EXPECT_EQ(given.levels[1].max_distance, 0.1);
    EXPECT_EQ(given.levels[1].iterations, 50);
}

TEST(Register, JudgesWhatItFound) {
    const PointCloud source = hill(20);
    PointCloud far = source.clone();
    for (int64_t i = 0; i < far.size(); ++i) far.positions.view()(i, 0) += 100;
    RegisterOptions options;
    const Registration apart = register_clouds(source, far, options);
    ASSERT_TRUE(apart.failure);
    EXPECT_EQ(apart.failure->code(), ErrorCode::check_failed);
    EXPECT_TRUE(contains(apart.failure->what(), "too little overlap"));
    EXPECT_EQ(apart.verdict.state, geometry::RegistrationState::failed);
    options.require_convergence = true;
    options.iterations = 1;
    const Registration refused = register_clouds(geometry::transformed(source, small_motion()), source, options);
    ASSERT_TRUE(refused.failure);
    EXPECT_TRUE(contains(refused.failure->what(), "did not converge"));
    options.iterations = 0;
    options.require_convergence = false;
    options.min_fitness = 0.5;
    EXPECT_TRUE(contains(register_clouds(source, far, options).failure->what(), "is below 0.500"));
}

TEST(Register, UnitsThatDifferAreNamed) {
    const PointCloud source = hill(50);
    PointCloud millimetres = geometry::transformed(source, small_motion());
    for (float& x : millimetres.positions.span()) x *= 1000;
    const Registration large = register_clouds(source, millimetres, {}),
                       small = register_clouds(millimetres, source, {});
    EXPECT_NE(large.verdict.state, geometry::RegistrationState::good);
    EXPECT_TRUE(
        contains(large.verdict.text(), "the target is 1,000 times as large as the source: is it in millimetres"));
    EXPECT_TRUE(contains(small.verdict.text(), "the source is 1,000 times as large as the target"));
    EXPECT_FALSE(contains(register_clouds(source, source, {}).verdict.text(), "times as large"));
}

/// Random points on the sides of a box with a square base, and on its top.
PointCloud square_box(int64_t n, uint64_t seed) {
    PointCloud cloud(n);
    const Rng rng(seed, 1);
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(3 * i);
        const float u = 2 * rng.uniform(at) - 1, v = rng.uniform(at + 1);
        const auto side = static_cast<int>(5 * rng.uniform(at + 2));
        const float places[5][3] = {{1, u, 2 * v}, {-1, u, 2 * v}, {u, 1, 2 * v}, {u, -1, 2 * v}, {u, 2 * v - 1, 2}};
        std::copy_n(places[side], 3, cloud.positions.data() + 3 * i);
    }
    return cloud;
}

TEST(Register, PosesOfASymmetricShapeAreListed) {
    const PointCloud box = square_box(6000, 17), again = square_box(6000, 18);
    RegisterOptions options;
    options.method = RegisterMethod::global;
    const RigidTransform turn = geometry::rotation_about({0, 0, 1}, 0.6);
    const Registration found = register_clouds(box, geometry::transformed(again, turn), options);
    EXPECT_NE(found.verdict.state, geometry::RegistrationState::good);
    ASSERT_EQ(found.others.size(), 3u);  // quarter turns
    std::set<int> quarters = {0};
    for (const OtherPose& other : found.others) {
        EXPECT_GE(other.likelihood, 0.5);
        const double degrees =
            geometry::rotation_angle(geometry::inverse(found.found.transform) * other.transform) * 180 / M_PI;
        EXPECT_NEAR(degrees, 90 * std::round(degrees / 90), 5);
        quarters.insert(static_cast<int>(std::round(degrees / 90)));
    }
    EXPECT_EQ(quarters.size(), 3u);  // a quarter turn either way, and half a turn
    EXPECT_TRUE(contains(found.verdict.text(), "3 in all are at least half as likely"));
    EXPECT_TRUE(register_clouds(hill(50), hill(50), options).others.empty());
}

TEST(Register, RefusesWhatMakesNoSense) {
    const PointCloud cloud = hill(5);
    RegisterOptions options;
    options.iterations = -1;
    EXPECT_NE(message_of([&] { register_clouds(cloud, cloud, options); }), "");
    options = {};
    options.min_fitness = 2;
    EXPECT_NE(message_of([&] { register_clouds(cloud, cloud, options); }), "");
    EXPECT_NE(message_of([&] { levels_of({1, 2}, {1}); }), "");
    EXPECT_NE(message_of([&] { levels_of({0}, {}); }), "");
    EXPECT_NE(message_of([&] { levels_of({1}, {-1}); }), "");
    EXPECT_TRUE(contains(message_of([&] { kernel_by_name("soft"); }), "unknown kernel soft"));
    for (const char* name : geometry::kRobustKernelWords) kernel_by_name(name);
}

TEST(Register, TransformsAreReadFromText) {
    const test::TemporaryFolder folder;
    test::write_file(folder / "t.txt", geometry::to_text(small_motion()));
    EXPECT_LT(pose_error(load_transform(folder / "t.txt"), small_motion(), hill(4)).rms, 1e-12);
    test::write_file(folder / "bad.txt", "1 2 3");
    EXPECT_TRUE(contains(message_of([&] { load_transform(folder / "bad.txt"); }), "bad.txt"));
    test::write_file(folder / "long.txt", std::string(100000, ' '));
    EXPECT_TRUE(contains(message_of([&] { load_transform(folder / "long.txt"); }), "too long"));
}

}  // namespace
}  // namespace stipple::tasks
