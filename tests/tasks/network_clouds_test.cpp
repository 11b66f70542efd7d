#include "stipple/tasks/network_clouds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;
using test::random_cloud;
using test::save_cloud;

double radius_of(const Array<float, 2>& points) {
    double largest = 0;
    for (int64_t i = 0; i < points.size(0); ++i)
        largest = std::max(largest, double{std::hypot(points.view()(i, 0), points.view()(i, 1), points.view()(i, 2))});
    return largest;
}

TEST(NetworkClouds, FillTheUnitSphere) {
    Mesh mesh = random_cloud(200);
    for (float& x : mesh.vertices.positions.span()) x = 7 * x + 3;
    mesh.vertices.origin = {5e5, -2e6, 10};
    const Array<float, 2> all = network_points(mesh.vertices, {.points = 0});
    ASSERT_EQ(all.size(0), 200);
    EXPECT_NEAR(radius_of(all), 1, 1e-6);
    const Array<float, 2> raw = network_points(mesh.vertices, {.points = 0, .normalise = false});
    EXPECT_NEAR(raw.view()(0, 1), mesh.vertices.world(0, 1), 1);
}

TEST(NetworkClouds, SamplesAreChosenAsAsked) {
    const Mesh mesh = random_cloud(100);
    const Array<float, 2> all = network_points(mesh.vertices, {.points = 0});
    for (const char* how : {"random", "fps", "first"}) {
        std::vector<int32_t> chosen;
        const Array<float, 2> few = network_points(mesh.vertices, {.points = 10, .sample = how, .seed = 5}, &chosen);
        ASSERT_EQ(few.size(0), 10);
        ASSERT_EQ(chosen.size(), 10u);
        EXPECT_EQ(std::set<int32_t>(chosen.begin(), chosen.end()).size(), 10u) << how;
        for (int64_t i = 0; i < 10; ++i)
            for (int axis = 0; axis < 3; ++axis)
                EXPECT_EQ(few.view()(i, axis), all.view()(chosen[static_cast<size_t>(i)], axis));
        if (how == std::string("first")) {
            EXPECT_EQ(chosen[9], 9);
        }
    }
    EXPECT_EQ(network_points(mesh.vertices, {.points = 1000}).size(0), 100);  // no point twice
    EXPECT_TRUE(contains(message_of([] { require_valid(CloudOptions{.sample = "best"}); }), "random, fps or first"));
    EXPECT_TRUE(contains(message_of([] { require_valid(CloudOptions{.points = -1}); }),
                         "points must be 0 to 1073741824, got -1"));
}

TEST(NetworkClouds, OnlyFinitePointsAreLoaded) {
    const test::TemporaryFolder folder;
    Mesh mesh = random_cloud(30);
    mesh.vertices.positions.data()[0] = INFINITY;
    io::Warnings warnings;
    const data::CloudEntry some{save_cloud(folder / "a.ply", mesh)};
    EXPECT_EQ(load_points(some, {}, {}, warnings).size(), 29);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(contains(warnings[0], "a.ply: 1 of 30 points not finite"));
    for (float& x : mesh.vertices.positions.span()) x = NAN;
    const data::CloudEntry none{save_cloud(folder / "b.ply", mesh)};
    EXPECT_TRUE(contains(message_of([&] { load_points(none, {}, {}, warnings); }), "b.ply: has no finite points"));
}

TEST(NetworkClouds, FacesAreSampled) {
    const test::TemporaryFolder folder;
    io::Warnings warnings;
    const data::CloudEntry entry{save_cloud(folder / "a.off", test::random_mesh(30))};
    EXPECT_EQ(load_points(entry, {.points = 77}, {}, warnings).size(), 77);
    EXPECT_EQ(load_points(entry, {.points = 0}, {}, warnings).size(), 2048);
    EXPECT_EQ(load_points(entry, {.sample_faces = false}, {}, warnings).size(), 30);
}

TEST(NetworkClouds, BatchesOfAListAreSpreadOverIt) {
    const test::TemporaryFolder folder;
    std::vector<data::CloudEntry> entries;
    for (int i = 0; i < 6; ++i)
        entries.push_back({save_cloud(folder / ("a" + std::to_string(i) + ".ply"), random_cloud(10 + i))});
    io::Warnings warnings;
    int advanced = 0;
    const LoadedBatch loaded = load_batch(entries, 3, {.points = 0}, {}, warnings, [&] { ++advanced; });
    EXPECT_EQ(loaded.chosen, (std::vector<int64_t>{0, 2, 4}));
    EXPECT_EQ(loaded.clouds.offsets, (std::vector<int64_t>{0, 10, 22, 36}));
    EXPECT_EQ(loaded.clouds.batch().clouds(), 3);
    EXPECT_EQ(advanced, 3);
    const Array<float, 2> second = loaded.clouds.points_on(Device{}, 1, 2);
    ASSERT_EQ(second.size(0), 12);
    EXPECT_EQ(second.view()(0, 0), loaded.clouds.rows[30]);
    entries.push_back({folder / "none.ply"});
    EXPECT_NE(message_of([&] { load_batch(entries, 100, {}, {}, warnings); }), "");
}

TEST(NetworkClouds, SyntheticOnesRepeat) {
    const CloudBatch batch = synthetic_clouds(4, 50, 9), again = synthetic_clouds(4, 50, 9);
    EXPECT_EQ(batch.rows, again.rows);
    EXPECT_NE(batch.rows, synthetic_clouds(4, 50, 10).rows);
    EXPECT_EQ(batch.points(), 200);
    for (const float x : batch.rows) EXPECT_LE(std::abs(x), 1.0f);
}

}  // namespace
}  // namespace stipple::tasks
