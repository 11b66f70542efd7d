#include "stipple/tasks/segment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;
using test::random_cloud;
using test::save_model;

TEST(Segment, LabelsEveryPointAndGrows) {
    const test::TemporaryFolder folder;
    Segmenter segmenter(load_model_or_engine(save_model(folder / "s.safetensors", "pointnet-segmenter", 6)),
                        {.device = "cpu", .points = 16});
    EXPECT_EQ(segmenter.parts(), 6);
    EXPECT_TRUE(segmenter.categories().empty());
    const PointCloud cloud = random_cloud(90).vertices;
    const Segments all = segment(segmenter, cloud, {.points = 0});
    ASSERT_EQ(all.labels.size(), 90u);
    ASSERT_EQ(all.probabilities.size(), 90u);
    for (const float p : all.probabilities) EXPECT_TRUE(p >= 1.0f / 6 && p <= 1);
    for (const int32_t label : all.labels) EXPECT_TRUE(label >= 0 && label < 6);
    // Points that the network saw keep what it said, the others take the nearest one's.
    std::vector<int32_t> chosen;
    const CloudOptions few{.points = 30, .seed = 2};
    const Segments seen = segmenter.run(network_points(cloud, few, &chosen));
    const Segments spread = segment(segmenter, cloud, few);
    ASSERT_EQ(spread.labels.size(), 90u);
    for (size_t i = 0; i < chosen.size(); ++i) {
        EXPECT_EQ(spread.labels[static_cast<size_t>(chosen[i])], seen.labels[i]);
        EXPECT_EQ(spread.probabilities[static_cast<size_t>(chosen[i])], seen.probabilities[i]);
    }
    EXPECT_NE(message_of([&] { segmenter.run(network_points(cloud, few), 1); }), "");
}

TEST(Segment, SeesAsManyPointsAsItWasTrainedOn) {
    const test::TemporaryFolder folder;
    const std::string path = save_model(folder / "s.safetensors", "pointnet-segmenter", 6);
    ModelOrEngine source = load_model_or_engine(path);
    source.model->weights.metadata["stipple.points"] = "30";
    Segmenter segmenter(std::move(source), {.device = "cpu"});
    EXPECT_EQ(segmenter.points(), 30);
    const PointCloud cloud = random_cloud(90).vertices;
    EXPECT_EQ(segment(segmenter, cloud, {.points = 0, .seed = 2}).labels,
              segment(segmenter, cloud, {.points = 30, .seed = 2}).labels);
    EXPECT_NE(segment(segmenter, cloud, {.points = 0, .seed = 2}).probabilities,
              segment(segmenter, cloud, {.points = 90, .seed = 2}).probabilities);
    source = load_model_or_engine(path);
    source.model->weights.metadata["stipple.points"] = "many";
    EXPECT_NE(message_of([&] { Segmenter(std::move(source), {.device = "cpu"}); }).find("stipple.points"),
              std::string::npos);
}

TEST(Segment, CategoriesRestrictParts) {
    const test::TemporaryFolder folder;
    Segmenter segmenter(load_model_or_engine(save_model(folder / "p.safetensors", "pointnet-part-segmenter", 50)),
                        {.device = "cpu"});
    ASSERT_EQ(segmenter.categories().size(), 16u);
    const PointCloud cloud = random_cloud(50).vertices;
    for (size_t category = 0; category < 16; ++category)
        for (const int32_t label : segment(segmenter, cloud, {.points = 0}, category).labels) {
            EXPECT_GE(label, segmenter.categories()[category].begin);
            EXPECT_LT(label, segmenter.categories()[category].end);
        }
}

TEST(Segment, PosesTurnWhatTheNetworkSees) {
    const test::TemporaryFolder folder;
    Segmenter segmenter(
        load_model_or_engine(save_model(folder / "s.safetensors", "pointnet-segmenter", 6, {{"stipple.up", "y"}})),
        {.device = "cpu"});
    EXPECT_EQ(segmenter.up(), (Axis{1, 1}));
    PointCloud cloud = random_cloud(60).vertices;
    const Segments upright = segment(segmenter, cloud, {.points = 0});
    turn_points(cloud.positions, turn({1, 1}, {2, 1}));
    cloud.origin = {};
    const Segments again = segment(segmenter, cloud, {.points = 0}, 0, turn({2, 1}, {1, 1}));
    EXPECT_EQ(again.labels, upright.labels);
    for (size_t i = 0; i < 60; ++i) EXPECT_NEAR(again.probabilities[i], upright.probabilities[i], 1e-4);
}

TEST(Segment, TheMostConfidentViewIsChosen) {
    const test::TemporaryFolder folder;
    Segmenter segmenter(load_model_or_engine(save_model(folder / "p.safetensors", "pointnet-part-segmenter", 50)),
                        {.device = "cpu"});
    const PointCloud cloud = random_cloud(50).vertices;
    const std::vector<Pose> poses = {Pose{}, turn({1, 1}, {2, 1})};
    const std::vector<size_t> categories = {3, 4, 9};
    const PartsView view = choose_view(segmenter, cloud, {.points = 0}, categories, poses);
    double best = -1;
    for (const size_t category : categories)
        for (const Pose& pose : poses) {
            const Segments segments = segment(segmenter, cloud, {.points = 0}, category, pose);
            double mean = 0;
            for (const float p : segments.probabilities) mean += p / 50;
            const auto parts = segmenter.parts_of(category);
            const double chance = 1.0 / static_cast<double>(parts.end - parts.begin);
            best = std::max(best, (mean - chance) / (1 - chance));
        }
    EXPECT_NEAR(view.confidence, best, 1e-6);
    EXPECT_EQ(choose_view(segmenter, cloud, {}, {4}, {Pose{}}).category, 4u);
    EXPECT_NE(message_of([&] { choose_view(segmenter, cloud, {}, {}, poses); }), "");
}

TEST(Segment, RefusesOtherNetworks) {
    const test::TemporaryFolder folder;
    const std::string model = save_model(folder / "c.safetensors", "pointnet-classifier", 4);
    EXPECT_TRUE(contains(message_of([&] { Segmenter(load_model_or_engine(model), {.device = "cpu"}); }),
                         "does not segment clouds"));
}

TEST(Segment, LabelsReplaceThoseThatAreThere) {
    PointCloud cloud = random_cloud(3).vertices;
    put_labels(cloud, {1, 2, 3});
    put_labels(cloud, {4, 5, 6});
    ASSERT_EQ(std::count_if(cloud.attributes.begin(), cloud.attributes.end(),
                            [](const Attribute& attribute) { return attribute.name() == "label"; }),
              1);
    EXPECT_EQ(find(cloud.attributes, "label")->value(2), 6);
}

}  // namespace
}  // namespace stipple::tasks
