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
    const std::vector<int32_t> all = segment(segmenter, cloud, {.points = 0});
    ASSERT_EQ(all.size(), 90u);
    for (const int32_t label : all) EXPECT_TRUE(label >= 0 && label < 6);
    // Points that the network saw keep what it said, the others take the nearest one's.
    std::vector<int32_t> chosen;
    const CloudOptions few{.points = 30, .seed = 2};
    const std::vector<int32_t> seen = segmenter.run(network_points(cloud, few, &chosen));
    const std::vector<int32_t> spread = segment(segmenter, cloud, few);
    ASSERT_EQ(spread.size(), 90u);
    for (size_t i = 0; i < chosen.size(); ++i) EXPECT_EQ(spread[static_cast<size_t>(chosen[i])], seen[i]);
    EXPECT_NE(message_of([&] { segmenter.run(network_points(cloud, few), 1); }), "");
}

TEST(Segment, CategoriesRestrictParts) {
    const test::TemporaryFolder folder;
    Segmenter segmenter(load_model_or_engine(save_model(folder / "p.safetensors", "pointnet-part-segmenter", 50)),
                        {.device = "cpu"});
    ASSERT_EQ(segmenter.categories().size(), 16u);
    const PointCloud cloud = random_cloud(50).vertices;
    for (size_t category = 0; category < 16; ++category)
        for (const int32_t label : segment(segmenter, cloud, {.points = 0}, category)) {
            EXPECT_GE(label, segmenter.categories()[category].begin);
            EXPECT_LT(label, segmenter.categories()[category].end);
        }
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
