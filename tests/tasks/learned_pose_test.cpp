// Poses by a network whose answer is known, because its last layer says the same of all clouds.

#include "stipple/tasks/learned_pose.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/program_files.h"
#include "stipple/core/rng.h"
#include "stipple/tasks/register.h"
#include "stipple/tasks/weights.h"
#include "tests/support/devices.h"
#include "tests/support/reference_weights.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;
using test::contains;
using test::message_of;

/// A pcrnet of a few numbers that answers `pose` (a quaternion w, x, y, z and a translation) in every iteration.
ModelOrEngine constant_pcrnet(const std::array<float, 7>& pose, int64_t iterations) {
    ModelOrEngine source;
    source.path = "pcrnet.safetensors";
    models::Model model;
    model.network = models::build_model(
        "pcrnet", {{"iterations", std::to_string(iterations)}, {"features", "16"}, {"hidden", "16"}});
    model.weights = test::random_weights(model.network, 2);
    network::set_config(model.weights, model.network);
    std::vector<float>& weight = model.weights.tensors.at("1.pose.weight").values;
    std::fill(weight.begin(), weight.end(), 0.0f);
    std::copy(pose.begin(), pose.end(), model.weights.tensors.at("1.pose.bias").values.begin());
    source.model = std::move(model);
    return source;
}

/// Points of a shape that no turn leaves in place, about `middle`.
PointCloud crooked(int64_t n, const geometry::Vector3& middle, uint64_t seed = 1) {
    PointCloud cloud(n);
    cloud.origin = middle;
    const Rng rng(seed);
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(2 * i);
        const float angle = 6.2831853f * rng.uniform(at), height = rng.uniform(at + 1);
        cloud.positions.view()(i, 0) = 3 * std::cos(angle) * (1 + height * height);
        cloud.positions.view()(i, 1) = 2 * std::sin(angle) + height;
        cloud.positions.view()(i, 2) = 5 * height + 0.5f * std::cos(2 * angle);
    }
    return cloud;
}

geometry::Vector3 mean_of(const PointCloud& cloud) {
    geometry::Vector3 mean = {};
    for (int64_t i = 0; i < cloud.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            mean[static_cast<size_t>(axis)] += cloud.world(i, axis) / static_cast<double>(cloud.size());
    return mean;
}

double distance(const geometry::Vector3& a, const geometry::Vector3& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// A turn about z.
std::array<float, 7> about_z(double degrees) {
    const double half = degrees * M_PI / 360;
    return {static_cast<float>(2 * std::cos(half)), 0, 0, static_cast<float>(2 * std::sin(half)), 0, 0, 0};
}

class LearnedPose : public test::OnDevice {
protected:
    PoseNetwork network(const std::array<float, 7>& pose, int64_t iterations) const {
        return {constant_pcrnet(pose, iterations), {.device = fmt::format("{}", device()), .batch = 1}};
    }
};
STIPPLE_ON_EVERY_DEVICE(LearnedPose);

// A network that always says 20 degrees: after three looks at a cloud that is turned by 60 it has arrived, and that is
// the answer, though it looks on.
TEST_P(LearnedPose, IsTheNearestOfAllLooks) {
    const PointCloud source = crooked(300, {500000, 5400000, 100});
    const geometry::Vector3 axis = {0, 0, 1};
    RigidTransform truth = geometry::rotation_about(axis, M_PI / 3, mean_of(source));
    truth.translation[0] += 30;
    const PointCloud target = geometry::transformed(source, truth);
    for (const int64_t per_run : {1, 3}) {
        PoseNetwork turning = network(about_z(20), per_run);
        EXPECT_EQ(turning.iterations(), per_run == 1 ? 8 : 6);
        const PoseNetwork::Found found = turning.find(source, target);
        EXPECT_EQ(found.source_points, 300);
        const PoseError error = pose_error(found.transform, truth, source);
        EXPECT_LT(error.degrees, 1e-2) << per_run;
        EXPECT_LT(error.rms, 1e-3) << per_run;
        EXPECT_EQ(found.transform.rotation, geometry::nearest_rotation(found.transform.rotation));
    }
    // What only leads away is not followed: means are laid on each other.
    PoseNetwork wrong = network(about_z(-50), 1);
    const RigidTransform still = wrong.find(source, source).transform;
    EXPECT_LT(pose_error(still, {}, source).rms, 1e-6);
}

// A second body pulls the mean of the target away; a network that says so twice lays the first ones on each other.
TEST_P(LearnedPose, TranslationsAreOfTheCommonScale) {
    const PointCloud source = crooked(300, {10, 20, 30});
    PointCloud target(360);
    target.origin = source.origin;
    std::copy_n(source.positions.data(), 900, target.positions.data());
    for (int64_t i = 300; i < 360; ++i)
        for (int axis = 0; axis < 3; ++axis)
            target.positions.view()(i, axis) = source.positions.view()(i - 300, axis) / 10 + (axis == 0 ? 15.0f : 0.0f);
    const geometry::Vector3 from = mean_of(source), to = mean_of(target);
    double scale = 0;
    for (int64_t i = 0; i < target.size(); ++i)
        scale = std::max(scale, distance({target.world(i, 0), target.world(i, 1), target.world(i, 2)}, to));
    std::array<float, 7> half = {1, 0, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < 3; ++i) half[4 + i] = static_cast<float>((from[i] - to[i]) / scale / 2);
    PoseNetwork shifting = network(half, 1);
    EXPECT_LT(pose_error(shifting.find(source, target).transform, {}, source).rms, 1e-4);
}

TEST_P(LearnedPose, HostileClouds) {
    PoseNetwork some = network(about_z(30), 2);
    PointCloud holes = crooked(50, {});
    holes.positions.data()[7] = NAN;
    holes.positions.data()[30] = INFINITY;
    EXPECT_EQ(some.find(holes, crooked(50, {})).source_points, 48);
    PointCloud nothing(3);
    std::fill_n(nothing.positions.data(), 9, NAN);
    EXPECT_TRUE(contains(message_of([&] { some.find(crooked(9, {}), nothing); }), "the target has no finite points"));
    PointCloud one(20);  // one place
    std::fill_n(one.positions.data(), 60, 3.0f);
    EXPECT_TRUE(std::isfinite(some.find(one, one).transform.translation[0]));
    EXPECT_EQ(some.find(crooked(5000, {}), crooked(5000, {})).source_points, kPosePoints);
    PoseNetwork broken = network({1, 0, 0, 0, 3e38f, 0, 0}, 2);
    EXPECT_TRUE(contains(message_of([&] { broken.find(crooked(9, {}), crooked(9, {})); }), "not finite"));
}

TEST_P(LearnedPose, SeesWhatASamplerChooses) {
    models::Model model;
    model.network = models::build_model("samplenet", {{"shape", "registration"}, {"count", "32"}});
    model.weights = test::random_weights(model.network, 4);
    network::set_config(model.weights, model.network);
    const auto sampler = [&] {
        ModelOrEngine source;
        source.model = model;
        return NetworkSampler(std::move(source), {.device = fmt::format("{}", device())});
    };
    PoseNetwork few = network(about_z(30), 1);
    EXPECT_TRUE(contains(message_of([&] { few.sample_by(sampler(), 16); }), "these weights choose 32 to 1024"));
    few.sample_by(sampler(), 40);
    const PointCloud cloud = crooked(500, {1, 2, 3});
    const PoseNetwork::Found found = few.find(cloud, cloud);
    EXPECT_EQ(found.source_points, 40);
    EXPECT_LT(distance(found.transform(mean_of(cloud)), mean_of(cloud)), 1e-3);  // of all points, not of the chosen
    EXPECT_EQ(few.find(crooked(20, {}), crooked(20, {})).source_points, 20);
}

TEST(LearnedPoses, AreOfPcrnets) {
    const test::TemporaryFolder folder;
    const std::string classifier = test::save_model(folder / "c.safetensors", "pointnet-classifier", 3);
    EXPECT_TRUE(contains(message_of([&] { load_pose_network(classifier, 0, {.device = "cpu"}); }),
                         "pointnet-classifier finds no poses; pcrnet does"));
    const auto save = [&](int64_t iterations) {
        const std::string path = folder / fmt::format("p{}.safetensors", iterations);
        network::save_weights(path, constant_pcrnet(about_z(3), iterations).model->weights, network::WeightStorage::f32,
                              Overwrite::refuse);
        return path;
    };
    EXPECT_EQ(load_pose_network(save(1), 0, {.device = "cpu"}).iterations(), kPoseIterations);
    EXPECT_EQ(load_pose_network(save(3), 0, {.device = "cpu"}).iterations(), kPoseIterations);
}

// ICP goes on from where the network leaves off.
TEST(Register, GoesOnFromALearnedStart) {
    const PointCloud source = crooked(2000, {});
    const RigidTransform truth = geometry::rotation_about({0.2, 0.1, 1}, 100 * M_PI / 180, {1, 2, 3});
    const PointCloud target = geometry::transformed(source, truth);
    RegisterOptions options;
    options.method = RegisterMethod::learned;
    EXPECT_TRUE(contains(message_of([&] { register_clouds(source, target, options); }), "no network"));
    int asked = 0;
    RigidTransform answer = truth * geometry::rotation_about({1, 0, 0}, 0.1);
    options.learned = [&](const PointCloud&, const PointCloud&) -> LearnedStart {
        ++asked;
        return {answer, "a friend"};
    };
    const Registration found = register_clouds(source, target, options);
    EXPECT_EQ(found.method, RegisterMethod::learned);
    EXPECT_EQ(found.story, "a friend");
    EXPECT_EQ(asked, 1);
    EXPECT_LT(pose_error(found.found.transform, truth, source).degrees, 0.1);
    EXPECT_GT(found.trust.confidence, 0.5);

    // auto: where ICP from no start ends well nobody is asked, else the network first.
    options.method = RegisterMethod::automatic;
    asked = 0;
    EXPECT_EQ(register_clouds(source, source, options).method, RegisterMethod::icp);
    EXPECT_EQ(asked, 0);
    const Registration automatic = register_clouds(source, target, options);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(automatic.method, RegisterMethod::learned) << automatic.story;
    EXPECT_TRUE(contains(automatic.story, "ICP from where the clouds lie ")) << automatic.story;
    EXPECT_TRUE(contains(automatic.story, "; a friend")) << automatic.story;
    // A network that is wrong does no harm: all poses are searched.
    answer = truth * geometry::rotation_about({1, 0, 0}, 3);
    const Registration searched = register_clouds(source, target, options);
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(searched.method, RegisterMethod::global) << searched.story;
    EXPECT_LT(pose_error(searched.found.transform, truth, source).degrees, 0.5);
    // Alone it fails, and says so: nothing but the evidence speaks for its pose.
    options.method = RegisterMethod::learned;
    const Registration wrong = register_clouds(source, target, options);
    EXPECT_LT(wrong.trust.confidence, 0.5);
    EXPECT_EQ(wrong.verdict.state, geometry::RegistrationState::failed) << wrong.verdict.text();
    EXPECT_TRUE(wrong.failure);
    EXPECT_EQ(asked, 3);
    options.method = RegisterMethod::automatic;
    // Of scans that differ in size it is not asked.
    std::vector<int32_t> some;
    for (int32_t i = 0; i < 2000; ++i)
        if (source.positions.data()[3 * i + 2] > 4) some.push_back(i);  // a piece at one end
    register_clouds(source, select(target, {some.data(), {static_cast<int64_t>(some.size())}}), options);
    EXPECT_EQ(asked, 3);
}

// With the weights that ship: a table of other points on both sides, turned by 40 degrees.
TEST(ShippedPcrnet, GivesAStartThatIcpGoesOnFrom) {
    const std::string path = find_weights(kPoseWeights);
    if (!is_file(path)) GTEST_SKIP() << "the weights " << kPoseWeights << " are not installed";
    PoseNetwork network = load_pose_network("", 0, {.device = "cpu", .batch = 1});
    const auto table = [](uint64_t seed) {
        PointCloud cloud(2000);
        const Rng rng(seed);
        for (int64_t i = 0; i < 2000; ++i) {
            const auto at = static_cast<uint64_t>(3 * i);
            const float x = 2 * rng.uniform(at) - 1, y = 2 * rng.uniform(at + 1) - 1, z = rng.uniform(at + 2);
            const bool is_leg = i % 3 == 0;
            cloud.positions.view()(i, 0) = is_leg ? (x < 0 ? -0.9f : 0.9f) + 0.05f * x : x;
            cloud.positions.view()(i, 1) = is_leg ? 0.5f * (y < 0 ? -0.9f : 0.9f) + 0.05f * y : 0.5f * y;
            cloud.positions.view()(i, 2) = is_leg ? 0.8f * z : 0.8f + 0.03f * z;
        }
        return cloud;
    };
    const PointCloud source = table(1);
    const RigidTransform truth = geometry::rotation_about({0.3, 0.4, 1}, 40 * M_PI / 180, {5, 5, 5});
    const PointCloud target = geometry::transformed(table(2), truth);
    RegisterOptions options;
    options.method = RegisterMethod::learned;
    options.learned = [&](const PointCloud& a, const PointCloud& b) -> LearnedStart {
        return {network.find(a, b).transform, ""};
    };
    const PoseError start = pose_error(network.find(source, target).transform, truth, source);
    EXPECT_LT(start.degrees, 20);
    const Registration found = register_clouds(source, target, options);
    EXPECT_FALSE(found.failure) << found.verdict.text();
    EXPECT_LT(pose_error(found.found.transform, truth, source).degrees, 1.5);
}

}  // namespace
}  // namespace stipple::tasks
