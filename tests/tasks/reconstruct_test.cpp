// Clouds that networks with random weights make: what holds whatever a network was trained to do.

#include "stipple/tasks/reconstruct.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "stipple/core/parallel.h"
#include "stipple/core/program_files.h"
#include "stipple/core/rng.h"
#include "stipple/data/class_names.h"
#include "stipple/geometry/rigid_transform.h"
#include "stipple/tasks/fit_likeness.h"
#include "stipple/tasks/weights.h"
#include "tests/support/devices.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;

ModelOrEngine random_autoencoder(int64_t count, const std::map<std::string, std::string>& metadata = {}) {
    ModelOrEngine source;
    source.path = "autoencoder.safetensors";
    models::Model model;
    model.network = models::build_model("autoencoder", {{"count", std::to_string(count)}, {"hidden", "32"}});
    model.weights = test::random_weights(model.network, 5);
    network::set_config(model.weights, model.network);
    for (const auto& [key, value] : metadata) model.weights.metadata[key] = value;
    source.model = std::move(model);
    return source;
}

/// On the mantle of a crooked body, far from 0.
PointCloud body(int64_t n, uint64_t seed = 1) {
    PointCloud cloud(n);
    cloud.origin = {500000, 5400000, 120};
    const Rng rng(seed);
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(2 * i);
        const float angle = 6.2831853f * rng.uniform(at), height = rng.uniform(at + 1);
        cloud.positions.view()(i, 0) = 30 * std::cos(angle) * (1 + height);
        cloud.positions.view()(i, 1) = 20 * std::sin(angle);
        cloud.positions.view()(i, 2) = 50 * height;
    }
    return cloud;
}

std::string likeness_text(double limit) {
    return likeness_json({{{8, {limit, limit}}, {2048, {limit, limit}}}});
}

class Reconstruct : public test::OnDevice {
protected:
    RunnerOptions where() const { return {.device = fmt::format("{}", device()), .batch = 8}; }
    Reconstructor network(int64_t count, const std::map<std::string, std::string>& metadata = {}) const {
        return {random_autoencoder(count, metadata), where()};
    }
};
STIPPLE_ON_EVERY_DEVICE(Reconstruct);

// The definition: mean to 0, radius to 1, the plain reading of the network, and back; distances by all pairs.
TEST_P(Reconstruct, IsTheDefinition) {
    const int64_t n = 100, count = 40;
    const PointCloud cloud = body(n);
    double mean[3] = {}, radius = 0;
    for (int64_t i = 0; i < n; ++i)
        for (int axis = 0; axis < 3; ++axis) mean[axis] += cloud.world(i, axis) / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
        radius = std::max(
            radius, std::hypot(cloud.world(i, 0) - mean[0], cloud.world(i, 1) - mean[1], cloud.world(i, 2) - mean[2]));
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < n; ++i)
        for (int axis = 0; axis < 3; ++axis)
            points.view()(i, axis) = static_cast<float>((cloud.world(i, axis) - mean[axis]) / radius);
    const ModelOrEngine model = random_autoencoder(count);
    const auto run = test::run_reference(model.model->network, model.model->weights, ops::Batch::single(n),
                                         {{"points", points.view()}});
    Reconstructor reconstructor = network(count);
    const Reconstructed found = reconstruct(reconstructor, cloud, {});
    ASSERT_EQ(found.cloud.size(), count);
    EXPECT_EQ(found.cloud.origin, cloud.origin);
    EXPECT_EQ(found.points, n);
    EXPECT_NEAR(found.radius, radius, 1e-6 * radius);
    EXPECT_FALSE(found.unlikeness);
    double scale = 1e-3;
    for (const double x : run.output("reconstructed").values) scale = std::max(scale, std::abs(x));
    for (int64_t i = 0; i < count; ++i)
        for (int axis = 0; axis < 3; ++axis)
            EXPECT_NEAR((found.cloud.world(i, axis) - mean[axis]) / radius, run.output("reconstructed").row(i)[axis],
                        2e-4 * scale);
    const auto gap = [&](const PointCloud& a, const PointCloud& b) {
        double sum = 0;
        for (int64_t i = 0; i < a.size(); ++i) {
            double nearest = INFINITY;
            for (int64_t j = 0; j < b.size(); ++j)
                nearest = std::min(nearest, std::hypot(a.world(i, 0) - b.world(j, 0), a.world(i, 1) - b.world(j, 1),
                                                       a.world(i, 2) - b.world(j, 2)));
            sum += nearest * nearest;
        }
        return std::sqrt(sum / static_cast<double>(a.size())) / radius;
    };
    EXPECT_NEAR(found.gaps.to_made, gap(cloud, found.cloud), 1e-4 * scale);
    EXPECT_NEAR(found.gaps.from_made, gap(found.cloud, cloud), 1e-4 * scale);
}

TEST_P(Reconstruct, PlaceSizeOrderAndDuplicatesDoNotMatter) {
    Reconstructor reconstructor = network(50);
    PointCloud cloud = body(300);
    const Reconstructed expected = reconstruct(reconstructor, cloud, {});
    const auto difference = [&](const PointCloud& a, double scale) {
        double most = 0;
        for (int64_t i = 0; i < 3 * a.size(); ++i)
            most = std::max(most, std::abs(a.positions.data()[i] / scale - expected.cloud.positions.data()[i]));
        return most / expected.radius;
    };
    cloud.origin = {-3e6, 8e6, 1e5};
    EXPECT_EQ(difference(reconstruct(reconstructor, cloud, {}).cloud, 1), 0);
    for (const double scale : {1024.0, 1.0 / 1024}) {
        PointCloud other = cloud.clone();
        for (int64_t i = 0; i < other.positions.elements(); ++i)
            other.positions.data()[i] = static_cast<float>(other.positions.data()[i] * scale);
        EXPECT_LT(difference(reconstruct(reconstructor, other, {}).cloud, scale), 1e-4);
    }
    PointCloud doubled(600);
    for (int64_t i = 0; i < 600; ++i)  // in another order, each twice
        std::copy_n(cloud.positions.data() + 3 * ((7 * i + 3) % 300), 3, doubled.positions.data() + 3 * i);
    doubled.origin = cloud.origin;
    const Reconstructed twice = reconstruct(reconstructor, doubled, {});
    EXPECT_EQ(twice.points, 300);
    EXPECT_LT(difference(twice.cloud, 1), 1e-4);
}

TEST_P(Reconstruct, FewerPointsAreAmongThoseMade) {
    Reconstructor reconstructor = network(64);
    const PointCloud cloud = body(200);
    const PointCloud all = reconstruct(reconstructor, cloud, {}).cloud;
    std::set<std::array<float, 3>> places;
    for (int64_t i = 0; i < 64; ++i)
        places.insert({all.positions.data()[3 * i], all.positions.data()[3 * i + 1], all.positions.data()[3 * i + 2]});
    for (const int64_t count : {1, 10, 63, 64}) {
        const PointCloud few = reconstruct(reconstructor, cloud, {.count = count}).cloud;
        ASSERT_EQ(few.size(), count);
        std::set<std::array<float, 3>> chosen;
        for (int64_t i = 0; i < count; ++i) {
            const float* p = few.positions.data() + 3 * i;
            EXPECT_TRUE(places.contains({p[0], p[1], p[2]}));
            chosen.insert({p[0], p[1], p[2]});
        }
        EXPECT_EQ(static_cast<int64_t>(chosen.size()), std::min<int64_t>(count, places.size()));
    }
    try {
        reconstruct(reconstructor, cloud, {.count = 65});
        ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "65 points: these weights make 1 to 64");
        EXPECT_TRUE(contains(error.hint(), "stipple upsample")) << error.hint();
    }
    EXPECT_NE(message_of([&] { reconstruct(reconstructor, cloud, {.count = -1}); }), "");
}

// Turned clouds in the pose that turns them back are the clouds; of several poses the most like one counts.
TEST_P(Reconstruct, PosesTurnThereAndBack) {
    Reconstructor reconstructor = network(50, {{"stipple.likeness", likeness_text(0.5)}});
    const PointCloud cloud = body(200);
    const Reconstructed expected = reconstruct(reconstructor, cloud, {.force = true});
    const std::vector<Pose> poses = all_poses(reconstructor.up());
    for (size_t k = 0; k < poses.size(); k += 5) {
        PointCloud turned = cloud.clone();
        turn_points(turned.positions, poses[k]);
        // The pose that undoes it is among all of them.
        double least = INFINITY;
        for (const Pose& back : poses) {
            if (!(back * poses[k] == Pose{})) continue;
            const Reconstructed found = reconstruct(reconstructor, turned, {.poses = {back}, .force = true});
            EXPECT_NEAR(found.gaps.to_made, expected.gaps.to_made, 1e-4);
            PointCloud same = expected.cloud.clone();
            turn_points(same.positions, poses[k]);
            for (int64_t i = 0; i < 3 * same.size(); ++i)
                EXPECT_NEAR(found.cloud.positions.data()[i], same.positions.data()[i], 1e-3 * expected.radius);
            least = *found.unlikeness;
        }
        EXPECT_LT(least, INFINITY);
    }
    double least = INFINITY;
    for (const Pose& pose : poses)
        least = std::min(least, *reconstruct(reconstructor, cloud, {.poses = {pose}, .force = true}).unlikeness);
    const Reconstructed best = reconstruct(reconstructor, cloud, {.poses = poses, .force = true});
    EXPECT_NEAR(*best.unlikeness, least, 1e-5);
}

// A cloud that is turned by a multiple of what is tried is the same cloud.
TEST_P(Reconstruct, TurnsAboutTheUpAxis) {
    for (const char* up : {"z", "-y"}) {
        Reconstructor reconstructor = network(50, {{"stipple.likeness", likeness_text(0.5)}, {"stipple.up", up}});
        const PointCloud cloud = body(200);
        const ReconstructOptions twelve{.turns = 12, .force = true};
        const Reconstructed expected = reconstruct(reconstructor, cloud, twelve);
        EXPECT_LE(*expected.unlikeness, *reconstruct(reconstructor, cloud, {.force = true}).unlikeness);
        const Axis axis = parse_axis(up);
        geometry::Vector3 direction = {};
        direction[static_cast<size_t>(axis.index)] = axis.sign;
        const geometry::RigidTransform turn = geometry::rotation_about(direction, 150 * M_PI / 180, {1, 2, 3});
        const Reconstructed found = reconstruct(reconstructor, geometry::transformed(cloud, turn), twelve);
        EXPECT_NEAR(*found.unlikeness, *expected.unlikeness, 1e-4);
        EXPECT_NEAR(std::fmod(found.turned + 150 - expected.turned + 720, 360), 0, 1e-6) << up;
        const PointCloud there = geometry::transformed(expected.cloud, turn);
        for (int64_t i = 0; i < there.size(); ++i)
            for (int axis_of = 0; axis_of < 3; ++axis_of)
                EXPECT_NEAR(found.cloud.world(i, axis_of), there.world(i, axis_of), 2e-3 * expected.radius) << up;
        EXPECT_NE(message_of([&] { reconstruct(reconstructor, cloud, {.turns = 0}); }), "");
        EXPECT_NE(message_of([&] { reconstruct(reconstructor, cloud, {.turns = 361}); }), "");
    }
}

TEST_P(Reconstruct, RefusesWhatIsUnlikeItsClasses) {
    std::map<std::string, std::string> metadata = {{"stipple.likeness", likeness_text(1e-3)}};
    data::set_class_names(metadata, {"airplane", "car"});
    Reconstructor reconstructor = network(50, metadata);
    EXPECT_EQ(reconstructor.classes(), (std::vector<std::string>{"airplane", "car"}));
    try {
        reconstruct(reconstructor, body(200), {});
        ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::check_failed);
        EXPECT_TRUE(contains(error.message(), "unlike what can be rebuilt (airplane, car)")) << error.message();
        EXPECT_TRUE(contains(error.hint(), "--force")) << error.hint();
    }
    const Reconstructed forced = reconstruct(reconstructor, body(200), {.force = true});
    EXPECT_TRUE(forced.is_unlike());
    EXPECT_EQ(forced.cloud.size(), 50);
    Reconstructor tolerant = network(50, {{"stipple.likeness", likeness_text(1e3)}});
    EXPECT_FALSE(reconstruct(tolerant, body(200), {}).is_unlike());
}

TEST_P(Reconstruct, HostileClouds) {
    Reconstructor reconstructor = network(30);
    const auto refusal = [&](const PointCloud& cloud) {
        return message_of([&] { reconstruct(reconstructor, cloud, {}); });
    };
    EXPECT_TRUE(contains(refusal(PointCloud(0)), "8 distinct points or more, this one has none"));
    EXPECT_TRUE(contains(refusal(body(7)), "this one has 7"));
    EXPECT_EQ(refusal(body(8)), "");
    PointCloud one(1000);
    std::fill_n(one.positions.data(), 3000, 2.5f);
    EXPECT_TRUE(contains(refusal(one), "this one has 1"));
    // One plane, one line, huge and tiny coordinates, a million points: clouds as others.
    for (const int flat : {1, 2}) {
        PointCloud cloud = body(100);
        for (int64_t i = 0; i < 100; ++i)
            for (int axis = 3 - flat; axis < 3; ++axis) cloud.positions.view()(i, axis) = 7;
        const Reconstructed found = reconstruct(reconstructor, cloud, {});
        for (int64_t i = 0; i < 3 * found.cloud.size(); ++i)
            EXPECT_TRUE(std::isfinite(found.cloud.positions.data()[i]));
    }
    for (const float scale : {1e30f, 1e-30f}) {
        PointCloud cloud = body(100);
        cloud.origin = {};
        for (int64_t i = 0; i < 300; ++i) cloud.positions.data()[i] *= scale;
        const Reconstructed found = reconstruct(reconstructor, cloud, {});
        for (int64_t i = 0; i < 3 * found.cloud.size(); ++i)
            EXPECT_TRUE(std::isfinite(found.cloud.positions.data()[i])) << scale;
    }
    EXPECT_EQ(reconstruct(reconstructor, body(200000), {}).points, kMostSeen);
}

TEST_P(Reconstruct, SameForAnyThreads) {
    const PointCloud cloud = body(5000);
    Reconstructor reconstructor = network(60);
    set_threads(1);
    const Reconstructed one = reconstruct(reconstructor, cloud, {.count = 20});
    set_threads(3);
    const Reconstructed three = reconstruct(reconstructor, cloud, {.count = 20});
    set_threads(0);
    EXPECT_TRUE(std::equal(one.cloud.positions.data(), one.cloud.positions.data() + 60, three.cloud.positions.data()));
}

TEST(Reconstructors, AreNetworksThatRebuild) {
    const test::TemporaryFolder folder;
    const std::string classifier = test::save_model(folder / "c.safetensors", "pointnet-classifier", 3);
    EXPECT_TRUE(contains(message_of([&] { Reconstructor(load_model_or_engine(classifier), {.device = "cpu"}); }),
                         "pointnet-classifier rebuilds no clouds"));
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
             {"stipple.likeness", "{}"}, {"stipple.classes", "3"}, {"stipple.up", "w"}})
        EXPECT_TRUE(contains(message_of([&] {
                                 Reconstructor(random_autoencoder(20, {{key, value}}), {.device = "cpu"});
                             }),
                             "autoencoder.safetensors"))
            << key;
}

TEST(FitLikeness, OfAnAutoencoderAndItsClasses) {
    Reconstructor reconstructor(random_autoencoder(40), {.device = "cpu", .batch = 4});
    data::DataSet set;
    const CloudBatch clouds = synthetic_clouds(10, 40, 4);
    set.clouds.points = clouds.rows;
    set.clouds.offsets = clouds.offsets;
    EXPECT_EQ(items_of_classes(set, {}).size(), 10u);
    EXPECT_TRUE(contains(message_of([&] { items_of_classes(set, {"cup"}); }), "no classes"));
    set.classes = {"bowl", "cup", "vase"};
    set.labels = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
    EXPECT_EQ(items_of_classes(set, {"vase", "bowl"}), (std::vector<int64_t>{0, 2, 3, 5, 6, 8, 9}));
    EXPECT_TRUE(contains(message_of([&] { items_of_classes(set, {"mug"}); }), "no class mug: it has bowl, cup, vase"));
    int advanced = 0;
    const std::vector<int64_t> items = items_of_classes(set, {"vase", "bowl"});
    const std::vector<LikenessClouds> sets =
        likeness_clouds(reconstructor, set, items, {.points = {500, 40, 16}}, [&] { ++advanced; });
    EXPECT_EQ(advanced, 42);
    ASSERT_EQ(sets.size(), 4u);  // no cloud has 500
    EXPECT_EQ(sets[2].points, 16);
    EXPECT_EQ(sets[2].gaps.size(), 7u);
    // The first 16 points of a cloud are rebuilt as they are by reconstruct().
    PointCloud few(16);
    std::copy_n(set.points_of(items[3]).data(), 48, few.positions.data());
    const Reconstructed found = reconstruct(reconstructor, few, {});
    EXPECT_NEAR(found.gaps.to_made, sets[2].gaps[3].to_made, 1e-6);
    EXPECT_NEAR(found.gaps.from_made, sets[2].gaps[3].from_made, 1e-6);
    EXPECT_NE(message_of([&] { likeness_clouds(reconstructor, set, items, {.points = {7}}); }), "");
    EXPECT_EQ(fit_likeness(sets).sizes.size(), 2u);
}

// With the weights that ship.
TEST(ShippedAutoencoder, RebuildsATableAndRefusesAKnot) {
    const std::string path = find_weights(kAutoencoderWeights);
    if (!is_file(path)) GTEST_SKIP() << "the weights " << kAutoencoderWeights << " are not installed";
    Reconstructor reconstructor(load_model_or_engine(path), {.device = "cpu"});
    ASSERT_TRUE(reconstructor.likeness()) << "stipple weights confidence was not run";
    EXPECT_TRUE(std::count(reconstructor.classes().begin(), reconstructor.classes().end(), "table"));
    EXPECT_EQ(reconstructor.count(), 2048);
    // A plate on four legs.
    PointCloud table(600);
    const Rng rng(3);
    for (int64_t i = 0; i < 600; ++i) {
        const auto at = static_cast<uint64_t>(3 * i);
        const float x = 2 * rng.uniform(at) - 1, y = 2 * rng.uniform(at + 1) - 1, z = rng.uniform(at + 2);
        const bool is_leg = i % 4 == 0;
        table.positions.view()(i, 0) = is_leg ? (x < 0 ? -0.9f : 0.9f) + 0.05f * z : x;
        table.positions.view()(i, 1) = is_leg ? 0.6f * (y < 0 ? -0.9f : 0.9f) : 0.6f * y;
        table.positions.view()(i, 2) = is_leg ? 0.8f * z : 0.8f;
    }
    const Reconstructed full = reconstruct(reconstructor, table, {});
    EXPECT_EQ(full.cloud.size(), 2048);
    EXPECT_LT(full.gaps.to_made, 0.08);
    // Three rings that are linked, and a ball.
    PointCloud rings(1200), ball(1200);
    for (int64_t i = 0; i < 1200; ++i) {
        const float angle = 6.2831853f * rng.uniform(static_cast<uint64_t>(9000 + i));
        const int64_t ring = i % 3;
        for (int64_t axis = 0; axis < 3; ++axis)
            rings.positions.view()(i, axis) = axis == ring             ? 0
                                              : axis == (ring + 1) % 3 ? std::cos(angle)
                                                                       : std::sin(angle) + 0.3f;
        const float height = 2 * rng.uniform(static_cast<uint64_t>(20000 + i)) - 1,
                    wide = std::sqrt(1 - height * height);
        ball.positions.view()(i, 0) = wide * std::cos(angle);
        ball.positions.view()(i, 1) = wide * std::sin(angle);
        ball.positions.view()(i, 2) = height;
    }
    for (const PointCloud* cloud : {&rings, &ball})
        EXPECT_TRUE(
            contains(message_of([&] { reconstruct(reconstructor, *cloud, {}); }), "unlike what can be rebuilt"));
}

}  // namespace
}  // namespace stipple::tasks
