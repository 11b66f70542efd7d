#include "stipple/tasks/upsample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/attributes.h"
#include "stipple/tasks/upsample/candidates.h"
#include "stipple/tasks/upsample/queries.h"
#include "stipple/tasks/upsample/tiles.h"
#include "stipple/tasks/weights.h"
#include "tests/support/data_sets.h"
#include "tests/support/puflow_reference.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::message_of;

/// A model that nobody trained.
ModelOrEngine untrained(const std::string& name, const std::map<std::string, std::string>& config = {}) {
    ModelOrEngine source;
    source.path = name;
    network::Network network = models::build_model(name, config);
    network::Weights weights = network::initial_weights(network, 1);
    source.model = models::Model{std::move(network), std::move(weights)};
    return source;
}
Upsampler make_puflow() {
    return Upsampler(untrained("puflow"), {.device = "cpu"});
}
/// One that leaves its queries where they are, between the points.
Upsampler make_flow_upsampler() {
    ModelOrEngine source = untrained("flow-upsampler", {{"layers", "1"}, {"width", "16"}, {"hidden", "16"}});
    for (const char* step : {"step1", "step2"}) {
        for (float& x : source.model->weights.tensors.at(std::string(step) + ".share.weight").values) x = 0;
        for (float& x : source.model->weights.tensors.at(std::string(step) + ".share.bias").values) x = -60;
    }
    return Upsampler(std::move(source), {.device = "cpu"});
}
/// The one that ships.
Upsampler make_shipped() {
    ModelOrEngine source;
    source.path = std::string(STIPPLE_SOURCE_DIR) + "/weights/" + kUpsamplerWeights + ".safetensors";
    source.model = models::load_model(source.path);
    return Upsampler(std::move(source), {.device = "cpu"});
}
std::vector<Upsampler> make_all() {
    std::vector<Upsampler> all;
    all.push_back(make_puflow());
    all.push_back(make_flow_upsampler());
    all.emplace_back();  // midpoints
    return all;
}

/// Points on the unit sphere, evenly (a spiral).
PointCloud sphere(int64_t n) {
    PointCloud cloud(n);
    for (int64_t i = 0; i < n; ++i) {
        const double z = 1 - (2 * static_cast<double>(i) + 1) / static_cast<double>(n), r = std::sqrt(1 - z * z);
        const double angle = 2.399963229728653 * static_cast<double>(i);
        float* p = cloud.positions.data() + 3 * i;
        p[0] = static_cast<float>(r * std::cos(angle)), p[1] = static_cast<float>(r * std::sin(angle));
        p[2] = static_cast<float>(z);
    }
    return cloud;
}

/// Distances of all points to their nearest others, ascending.
std::vector<float> nearest_distances(const PointCloud& cloud) {
    Array<int32_t, 2> found({cloud.size(), 2});
    Array<float, 2> distances_sq({cloud.size(), 2});
    ops::knn(ops::PointIndex(cloud.positions.view()), cloud.positions.view(), found.view(), distances_sq.view());
    std::vector<float> distances;
    for (int64_t i = 0; i < cloud.size(); ++i) distances.push_back(std::sqrt(distances_sq.data()[2 * i + 1]));
    std::sort(distances.begin(), distances.end());
    return distances;
}

TEST(UpsampleTiles, HoldEveryPointOnce) {
    const PointCloud cloud = sphere(1000);
    for (const int64_t largest : {1, 7, 300, 1000, 5000}) {
        std::set<int32_t> seen;
        for (const Tile& tile : cut_tiles(cloud.positions.view(), largest)) {
            EXPECT_GE(tile.points.size(), 1u);
            EXPECT_LE(static_cast<int64_t>(tile.points.size()), largest);
            EXPECT_TRUE(std::is_sorted(tile.points.begin(), tile.points.end()));
            for (const int32_t i : tile.points) {
                EXPECT_TRUE(seen.insert(i).second);
                EXPECT_EQ(distance_sq_to(tile, cloud.positions.data() + 3 * i), 0);
            }
        }
        EXPECT_EQ(seen.size(), 1000u);
    }
    EXPECT_TRUE(cut_tiles(PointCloud(0).positions.view(), 5).empty());
    // Points at one place are cut all the same.
    PointCloud same(100);
    std::fill_n(same.positions.data(), 300, 2.0f);
    EXPECT_EQ(cut_tiles(same.positions.view(), 30).size(), 4u);
}

TEST(UpsampleTiles, DistancesToBoxes) {
    const Tile a{{}, {0, 0, 0}, {1, 1, 1}}, b{{}, {2, 0, 0}, {3, 1, 1}};
    const float point[3] = {3, 1.5f, -2};
    EXPECT_FLOAT_EQ(distance_sq_to(a, point), 4 + 0.25f + 4);
    EXPECT_TRUE(are_near(a, b, 1));
    EXPECT_FALSE(are_near(a, b, 0.99f));
}

TEST(UpsampleAttributes, AreBlendedByTheirKind) {
    Attributes attributes;
    const auto add = [&](const char* name, auto zero, std::vector<double> values, int64_t components) {
        using T = decltype(zero);
        Attribute& a =
            attributes.emplace_back(name, dtype_of<T>, static_cast<int64_t>(values.size()) / components, components);
        for (size_t i = 0; i < values.size(); ++i) a.as<T>().data()[i] = static_cast<T>(values[i]);
    };
    add("color", uint8_t{}, {0, 100, 255, 10, 100, 0}, 3);
    add("intensity", uint16_t{}, {100, 65535}, 1);
    add("label", int32_t{}, {7, -3}, 1);
    add("classification", uint8_t{}, {2, 6}, 1);
    add("time", double{}, {1e9, 1e9 + 4}, 1);
    add("normal", float{}, {1, 0, 0, 0, 1, 0}, 3);
    // Three points: of both, mostly of the second, and of the first alone.
    const std::vector<int32_t> sources = {0, 1, 0, 1, 0, -1};
    const std::vector<float> weights = {0.5f, 0.5f, 0.25f, 0.75f, 2, 0};
    const Attributes made = blend_attributes(attributes, 3, 2, sources, weights);
    ASSERT_EQ(made.size(), attributes.size());
    const auto value = [&](const char* name, int64_t row, int64_t c = 0) { return find(made, name)->value(row, c); };
    EXPECT_EQ(value("color", 0), 5);
    EXPECT_EQ(value("color", 0, 2), 128);  // 127.5
    EXPECT_EQ(value("color", 2, 2), 255);
    EXPECT_EQ(value("intensity", 1), 49176);  // 49176.25
    EXPECT_EQ(value("label", 0), 7);          // the first of equals
    EXPECT_EQ(value("label", 1), -3);
    EXPECT_EQ(value("classification", 1), 6);
    EXPECT_EQ(value("time", 1), 1e9 + 3);
    EXPECT_NEAR(value("normal", 0), std::sqrt(0.5), 1e-6);
    EXPECT_EQ(value("normal", 2), 1);
    for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].dtype(), attributes[i].dtype());
}

TEST(UpsampleAttributes, NormalsThatCancelAreThoseOfTheHeaviest) {
    Attributes attributes;
    Attribute& normals = attributes.emplace_back("normal", DType::f32, 2, 3);
    const float values[6] = {0, 0, 1, 0, 0, -1};
    std::copy_n(values, 6, normals.as<float>().data());
    const Attributes made = blend_attributes(attributes, 1, 2, std::vector<int32_t>{0, 1}, std::vector<float>{1, 1});
    EXPECT_EQ(made[0].value(0, 2), 1);
}

TEST(Upsample, CountsAreExact) {
    const PointCloud cloud = sphere(700);
    std::vector<Upsampler> all = make_all();
    for (Upsampler& upsampler : all) {
        EXPECT_EQ(upsampler.maker().mover() != nullptr, &upsampler == &all[1]);
        for (const double ratio : {1.0, 2.0, 3.7, 4.0}) {
            const Upsampled made = upsample(upsampler, cloud, {.ratio = ratio});
            EXPECT_EQ(made.cloud.size(), std::llround(700 * ratio)) << ratio;
            for (int64_t i = 0; i < made.cloud.positions.elements(); ++i)
                ASSERT_TRUE(std::isfinite(made.cloud.positions.data()[i]));
        }
        EXPECT_EQ(upsample(upsampler, cloud, {.count = 1001}).cloud.size(), 1001);
    }
    for (const double ratio : {16.0, 17.0})  // the most of one pass, and two
        EXPECT_EQ(upsample(all[1], cloud, {.ratio = ratio}).cloud.size(), std::llround(700 * ratio)) << ratio;
    // More than the network has trained: two passes.
    EXPECT_EQ(upsample(all[0], cloud, {.ratio = 7}).cloud.size(), 4900);
}

/// Neighbours on the same line are near and their area seems large: where that decided alone, a cell of a LiDAR frame
/// had places for half of its points.
TEST(Upsample, PointsOnLinesHaveQueriesEnough) {
    PointCloud cloud(600);
    for (int64_t i = 0; i < 600; ++i) {  // six lines, their points up to a hundred times as dense as the lines
        float* p = cloud.positions.data() + 3 * i;
        const auto along = static_cast<float>(i % 100);
        p[0] = 1e-4f * along * along, p[1] = static_cast<float>(i / 100), p[2] = 0;
    }
    std::vector<int32_t> all(600);
    for (int32_t i = 0; i < 600; ++i) all[static_cast<size_t>(i)] = i;
    const std::vector<uint8_t> is_wanted(600, 1);
    for (const double ratio : {1.0, 4.0, 16.0}) {
        const Queries queries = make_queries(
            {.region = {cloud.positions.view(), all}, .around = all, .is_wanted = is_wanted, .ratio = ratio});
        std::vector<int64_t> counts(600, 0);
        for (const int32_t parent : queries.parents) ++counts[static_cast<size_t>(parent)];
        EXPECT_GE(*std::min_element(counts.begin(), counts.end()), ratio);
    }
    Upsampler upsampler = make_flow_upsampler();
    EXPECT_EQ(upsample(upsampler, cloud, {.ratio = 4}).cloud.size(), 2400);
}

TEST(Upsample, PointsAreEvenAndOnTheSurface) {
    const PointCloud cloud = sphere(700);
    Upsampler upsampler = make_shipped();
    const PointCloud made = upsample(upsampler, cloud, {.ratio = 4}).cloud;
    const float spacing = data::mean_spacing(made.positions.view());
    EXPECT_NEAR(spacing, data::mean_spacing(cloud.positions.view()) / 2,
                0.1 * data::mean_spacing(cloud.positions.view()));
    const std::vector<float> distances = nearest_distances(made);
    EXPECT_GT(distances.front(), 0.1f * spacing);
    for (int64_t i = 0; i < made.size(); ++i) {
        const float* p = made.positions.data() + 3 * i;
        EXPECT_NEAR(std::hypot(p[0], p[1], p[2]), 1, 0.005);  // the middle between neighbours lies up to 0.01 inside
    }
}

TEST(Upsample, TilesDoNotShow) {
    const PointCloud cloud = sphere(3000);
    Upsampler upsampler = make_flow_upsampler();
    const PointCloud whole = upsample(upsampler, cloud, {.ratio = 4}).cloud;
    const UpsampleOptions tiled{.ratio = 4, .tile_points = 400};
    const PointCloud made = upsample(upsampler, cloud, tiled).cloud;
    ASSERT_EQ(made.size(), 12000);
    const std::vector<float> of_whole = nearest_distances(whole), of_tiles = nearest_distances(made);
    // No two points nearer than where there are no tiles, hardly any farther from each other.
    EXPECT_GT(of_tiles.front(), 0.5f * of_whole.front());
    EXPECT_NEAR(of_tiles[6000], of_whole[6000], 0.05f * of_whole[6000]);
    // As dense near the borders of tiles as elsewhere: inputs within two spacings of another tile's box.
    const std::vector<Tile> tiles = cut_tiles(cloud.positions.view(), 400);
    ASSERT_EQ(tiles.size(), 8u);
    const float reach = 2 * data::mean_spacing(made.positions.view());
    const auto share_near = [&](const PointCloud& points) {
        int64_t near = 0;
        for (int64_t i = 0; i < points.size(); ++i) {
            int boxes = 0;
            for (const Tile& tile : tiles)
                boxes += distance_sq_to(tile, points.positions.data() + 3 * i) <= reach * reach;
            near += boxes > 1;
        }
        return static_cast<double>(near) / static_cast<double>(points.size());
    };
    EXPECT_GT(share_near(whole), 0.05);
    EXPECT_NEAR(share_near(made), share_near(whole), 0.05 * share_near(whole));
}

TEST(Upsample, InputPointsAreKeptOnRequest) {
    PointCloud cloud = sphere(600);
    cloud.attributes.emplace_back("label", DType::i32, 600, 1);
    for (int32_t i = 0; i < 600; ++i) cloud.attributes[0].as<int32_t>().data()[i] = i;
    cloud.origin = {1000, 2000, 3000};
    Upsampler upsampler = make_flow_upsampler();
    UpsampleOptions options{.ratio = 3, .keeps_input = true, .tile_points = 200};
    const PointCloud made = upsample(upsampler, cloud, options).cloud;
    ASSERT_EQ(made.size(), 1800);
    EXPECT_EQ(made.origin, cloud.origin);
    EXPECT_TRUE(std::equal(cloud.positions.data(), cloud.positions.data() + 1800, made.positions.data()));
    for (int64_t i = 0; i < 600; ++i) EXPECT_EQ(made.attributes[0].value(i), i);
    EXPECT_GT(nearest_distances(made).front(), 0.1f * data::mean_spacing(made.positions.view()));
    options = {.ratio = 1, .keeps_input = true};
    EXPECT_EQ(upsample(upsampler, cloud, options).cloud.size(), 600);
}

TEST(Upsample, AttributesComeFromNearby) {
    PointCloud cloud = sphere(500);
    cloud.attributes.emplace_back("color", DType::u8, 500, 3);
    cloud.attributes.emplace_back("label", DType::u8, 500, 1);
    Attribute &color = cloud.attributes[0], &label = cloud.attributes[1];
    for (int64_t i = 0; i < 500; ++i) {
        const float z = cloud.positions.data()[3 * i + 2];
        for (int c = 0; c < 3; ++c) color.as<uint8_t>().data()[3 * i + c] = static_cast<uint8_t>(127 + 120 * z);
        label.as<uint8_t>().data()[i] = z > 0;
    }
    std::vector<Upsampler> all = make_all();
    for (Upsampler& upsampler : all) {
        const PointCloud made = upsample(upsampler, cloud, {.ratio = 4}).cloud;
        for (int64_t i = 0; i < made.size(); ++i) {
            const float z = made.positions.data()[3 * i + 2];
            EXPECT_NEAR(find(made.attributes, "color")->value(i, 1), 127 + 120 * z, 30);
            if (std::abs(z) > 0.6f) {
                EXPECT_EQ(find(made.attributes, "label")->value(i), z > 0);
            }
        }
    }
}

TEST(Upsample, ThreadsDoNotMatter) {
    const PointCloud cloud = sphere(900);
    Upsampler upsampler = make_puflow();
    const UpsampleOptions options{.ratio = 2.5, .tile_points = 300};
    const int before = threads();
    set_threads(1);
    const PointCloud one = upsample(upsampler, cloud, options).cloud;
    set_threads(before);
    const PointCloud many = upsample(upsampler, cloud, options).cloud;
    EXPECT_TRUE(std::equal(one.positions.span().begin(), one.positions.span().end(), many.positions.span().begin()));
}

TEST(Upsample, OddCloudsHaveAnAnswer) {
    std::vector<Upsampler> all = make_all();
    for (Upsampler& upsampler : all) {
        const auto refusal = [&](const PointCloud& cloud, const UpsampleOptions& options) {
            return message_of([&] { upsample(upsampler, cloud, options); });
        };
        EXPECT_NE(refusal(PointCloud(0), {.ratio = 4}).find("0 distinct points"), std::string::npos);
        EXPECT_NE(refusal(sphere(1), {.ratio = 4}).find("1 distinct points"), std::string::npos);
        PointCloud same(100);
        std::fill_n(same.positions.data(), 300, 5.0f);
        EXPECT_NE(refusal(same, {.ratio = 4}).find("1 distinct points"), std::string::npos);
        const PointCloud cloud = sphere(kFewestUpsampled);
        EXPECT_EQ(upsample(upsampler, cloud, {.ratio = 4}).cloud.size(), 4 * kFewestUpsampled);
        // Every point twice: the count is that of the file, and no two outputs coincide.
        PointCloud twice(2 * 300);
        const PointCloud once = sphere(300);
        for (int i = 0; i < 2; ++i) std::copy_n(once.positions.data(), 900, twice.positions.data() + 900 * i);
        const Upsampled made = upsample(upsampler, twice, {.ratio = 2});
        EXPECT_EQ(made.duplicates, 300);
        EXPECT_EQ(made.cloud.size(), 1200);
        EXPECT_GT(nearest_distances(made.cloud).front(), 0);
        // A plane stays a plane, a line a line.
        PointCloud flat = sphere(400);
        for (int64_t i = 0; i < 400; ++i) flat.positions.data()[3 * i + 2] = 1;
        const PointCloud flatter = upsample(upsampler, flat, {.ratio = 2}).cloud;
        EXPECT_EQ(flatter.size(), 800);
        const auto height = [&](int64_t i) { return flatter.positions.data()[3 * i + 2]; };
        for (int64_t i = 0; i < 800 && !upsampler.has_network(); ++i) EXPECT_EQ(height(i), 1.0f);
        PointCloud line(100);
        for (int64_t i = 0; i < 100; ++i)
            for (int c = 0; c < 3; ++c) line.positions.data()[3 * i + c] = static_cast<float>(i);
        const PointCloud longer = upsample(upsampler, line, {.ratio = 3}).cloud;
        EXPECT_EQ(longer.size(), 300);
        for (int64_t i = 0; i < 300 && !upsampler.has_network(); ++i) {
            const float* p = longer.positions.data() + 3 * i;
            EXPECT_TRUE(p[0] == p[1] && p[1] == p[2] && p[0] >= 0 && p[0] <= 99) << p[0] << ' ' << p[1] << ' ' << p[2];
        }
        // Small and large units give the same.
        const PointCloud unit = upsample(upsampler, sphere(300), {.ratio = 2}).cloud;
        for (const float scale : {0x1p-40f, 0x1p40f}) {  // powers of two, so that scaling rounds nothing
            PointCloud scaled = sphere(300);
            for (int64_t i = 0; i < 900; ++i) scaled.positions.data()[i] *= scale;
            const PointCloud large = upsample(upsampler, scaled, {.ratio = 2}).cloud;
            ASSERT_EQ(large.size(), 600) << scale;
            for (int64_t i = 0; i < 3 * 600; ++i)
                ASSERT_NEAR(large.positions.data()[i] / scale, unit.positions.data()[i], 1e-5) << scale;
        }
    }
}

TEST(Upsample, RefusesNumbersThatMakeNoSense) {
    const PointCloud cloud = sphere(500);
    const auto refusal = [&](const UpsampleOptions& options) {
        return message_of([&] { upsampled_count(cloud, options); });
    };
    EXPECT_NE(refusal({}).find("how many"), std::string::npos);
    EXPECT_NE(refusal({.ratio = 2, .count = 1000}).find("how many"), std::string::npos);
    EXPECT_NE(refusal({.ratio = 0.5}).find("1 or more, got 0.5"), std::string::npos);
    EXPECT_NE(refusal({.ratio = -4}).find("1 or more"), std::string::npos);
    EXPECT_NE(refusal({.ratio = NAN}).find("1 or more"), std::string::npos);
    EXPECT_NE(refusal({.ratio = INFINITY}).find("1 or more"), std::string::npos);
    EXPECT_NE(refusal({.ratio = 1e9}).find("too many"), std::string::npos);
    EXPECT_NE(refusal({.count = 499}).find("fewer than the cloud has"), std::string::npos);
    EXPECT_NE(refusal({.count = -1}).find("above 0"), std::string::npos);
    EXPECT_NE(refusal({.spacing = 10}).find("wider than"), std::string::npos);
    EXPECT_NE(refusal({.spacing = -1}).find("above 0"), std::string::npos);
    // Half the spacing: four times the points.
    const double spacing = data::mean_spacing(cloud.positions.view());
    EXPECT_NEAR(static_cast<double>(upsampled_count(cloud, {.spacing = spacing / 2})), 2000, 10);
    EXPECT_NEAR(spacing, std::sqrt(4 * M_PI / 500), 0.1 * spacing);
}

/// Seeds, patches, frames and children are those of the published program; what is chosen of them is our own.
TEST(Upsample, CandidatesAreThoseOfThePublishedProgram) {
    STIPPLE_NEEDS_DATA(test::kPuFlowReference);
    const std::vector<float> input = test::load_puflow_array("cloud_input").floats();
    const std::vector<double> expected = test::load_puflow_array("cloud_candidates").values;
    const auto n = static_cast<int64_t>(input.size()) / 3;
    ModelOrEngine source;
    source.path = "puflow";
    source.model = models::Model{models::build_model("puflow", {}), test::load_puflow_weights()};
    Upsampler upsampler(std::move(source), {.device = "cpu"});
    std::vector<int32_t> all(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) all[static_cast<size_t>(i)] = i;
    const std::vector<uint8_t> is_wanted(static_cast<size_t>(n), 1);
    const Candidates made = upsampler.maker().make({.region = {View<const float, 2>(input.data(), {n, 3}), all},
                                                    .around = all,
                                                    .is_wanted = is_wanted,
                                                    .ratio = 4});
    // There: in the frame of the whole cloud, 32 patches of 1024 children and 256 points. Here: children, then more
    // patches where these leave points out, then every point once.
    double centre[3] = {}, radius = 0;
    for (int64_t i = 0; i < 3 * n; ++i) centre[i % 3] += input[static_cast<size_t>(i)] / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i)
        radius = std::max(radius, std::hypot(input[static_cast<size_t>(3 * i)] - centre[0],
                                             input[static_cast<size_t>(3 * i + 1)] - centre[1],
                                             input[static_cast<size_t>(3 * i + 2)] - centre[2]));
    ASSERT_GE(made.size(), 32 * 1024 + n);
    double largest = 0;
    for (int64_t patch = 0; patch < 32; ++patch)
        for (int64_t i = 0; i < 3 * 1024; ++i)
            largest = std::max(
                largest, std::abs((made.points[static_cast<size_t>(3 * 1024 * patch + i)] - centre[i % 3]) / radius -
                                  expected[static_cast<size_t>(3 * 1280 * patch + i)]));
    EXPECT_LE(largest, 1e-3);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(made.parents[static_cast<size_t>(made.size() - n + i)], i);
    EXPECT_EQ(upsample(upsampler,
                       [&] {
                           PointCloud cloud(n);
                           std::copy(input.begin(), input.end(), cloud.positions.data());
                           return cloud;
                       }(),
                       {.ratio = 4})
                  .cloud.size(),
              4 * n);
}

TEST(Upsample, RefusesNetworksThatDoSomethingElse) {
    EXPECT_NE(
        message_of([] { Upsampler(untrained("pointnet-classifier"), {.device = "cpu"}); }).find("does not upsample"),
        std::string::npos);
}

}  // namespace
}  // namespace stipple::tasks
