#include "stipple/tasks/evaluate_parts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;

/// Clouds of two categories, of 2 and 3 parts, in turn.
data::DataSet parted_set(int64_t clouds, int64_t n) {
    data::DataSet set;
    set.layout = "made-up";
    set.split = "test";
    set.classes = {"cup", "lamp"};
    set.categories = {{"cup", 0, 2}, {"lamp", 2, 5}};
    const CloudBatch made = synthetic_clouds(clouds, n, 4);
    set.clouds.points = made.rows;
    set.clouds.offsets = made.offsets;
    for (int64_t i = 0; i < clouds; ++i) {
        set.labels.push_back(static_cast<int32_t>(i % 2));
        const data::PartCategory& category = set.categories[static_cast<size_t>(i % 2)];
        for (int64_t p = 0; p < n; ++p)
            set.parts.push_back(static_cast<int32_t>(category.begin + p % (category.end - category.begin)));
    }
    return set;
}

/// Best of the parts [begin, end), point by point, with one cloud at a time.
std::vector<int32_t> answers_alone(Segmenter& segmenter, const data::DataSet& set, int64_t item, size_t category,
                                   int64_t begin, int64_t end) {
    CloudBatch one;
    one.add(seen_points(set.clouds, item, 0, 0, {}));
    const Array<float, 2> logits = segmenter.logits(one, {&category, 1});
    std::vector<int32_t> parts;
    for (int64_t i = 0; i < logits.size(0); ++i) {
        const float* row = logits.data() + i * segmenter.parts();
        parts.push_back(static_cast<int32_t>(std::max_element(row + begin, row + end) - row));
    }
    return parts;
}

class EvaluateParts : public testing::Test {
protected:
    /// A network that is told the category; `metadata` names them.
    Segmenter told(const std::string& categories, int64_t batch = 3) {
        const network::Network net = models::build_model(
            "pointnet-part-segmenter", {{"classes", "5"}, {"categories", "2"}, {"feature_transform", "false"}});
        network::Weights weights = network::initial_weights(net, 3);
        if (!categories.empty()) weights.metadata["stipple.categories"] = categories;
        network::save_weights(folder / "told.safetensors", weights, network::WeightStorage::f32, Overwrite::allow);
        return {load_model_or_engine(folder / "told.safetensors"), {.device = "cpu", .points = 40}, batch};
    }
    Segmenter plain(int64_t parts) {
        const std::string path = folder / ("plain" + std::to_string(parts) + ".safetensors");
        test::save_model(path, "pointnet-segmenter", parts);
        return {load_model_or_engine(path), {.device = "cpu", .points = 40}, 4};
    }

    test::TemporaryFolder folder;
};

TEST_F(EvaluateParts, ByTheProtocol) {
    // The network has the categories in another order: lamp 0 to 3, cup 3 to 5.
    Segmenter made = told(R"({"lamp": [0, 3], "cup": [3, 5]})");
    data::DataSet set = parted_set(6, 30);
    const int64_t begin[] = {3, 0}, end[] = {5, 3}, shift[] = {3, -2};
    std::vector<double> expected;
    int64_t right = 0;
    for (int64_t item = 0; item < 6; ++item) {
        const auto label = static_cast<size_t>(item % 2);
        const std::vector<int32_t> found = answers_alone(made, set, item, 1 - label, begin[label], end[label]);
        // The truth is the answer but for a third of the points, which have another part.
        const int64_t count = end[label] - begin[label];
        for (size_t p = 0; p < 30; ++p) {
            const int64_t part = p % 3 == 0 ? begin[label] + (found[p] - begin[label] + 1) % count : found[p];
            set.parts[30 * static_cast<size_t>(item) + p] = static_cast<int32_t>(part - shift[label]);
        }
        double sum = 0;
        for (int64_t part = begin[label]; part < end[label]; ++part) {
            int64_t both = 0, either = 0;
            for (size_t p = 0; p < 30; ++p) {
                const bool is = set.parts[30 * static_cast<size_t>(item) + p] + shift[label] == part,
                           answered = found[p] == part;
                both += is && answered;
                either += is || answered;
                right += is && answered;
            }
            sum += either == 0 ? 1 : static_cast<double>(both) / static_cast<double>(either);
        }
        expected.push_back(sum / static_cast<double>(end[label] - begin[label]));
    }
    int64_t advanced = 0;
    const std::vector<PartScores> scores =
        evaluate(made, set, {.points = {0}}, [&](int64_t clouds) { advanced += clouds; });
    ASSERT_EQ(scores.size(), 1u);
    const double cups = (expected[0] + expected[2] + expected[4]) / 3,
                 lamps = (expected[1] + expected[3] + expected[5]) / 3;
    EXPECT_NEAR(scores[0].instance_iou.mean, (cups + lamps) / 2, 1e-12);
    EXPECT_NEAR(scores[0].class_iou.mean, (cups + lamps) / 2, 1e-12);
    ASSERT_EQ(scores[0].category_iou.size(), 2u);
    EXPECT_NEAR(scores[0].category_iou[0], cups, 1e-12);
    EXPECT_NEAR(scores[0].category_iou[1], lamps, 1e-12);
    EXPECT_EQ(scores[0].categories[1].name, "lamp");
    EXPECT_NEAR(scores[0].accuracy.mean, static_cast<double>(right) / 180, 1e-12);
    EXPECT_NEAR(scores[0].accuracy.mean, 2.0 / 3, 1e-12);
    EXPECT_EQ(advanced, 6);
}

TEST_F(EvaluateParts, FewerPointsKeepTheirTruth) {
    Segmenter made = plain(5);
    const data::DataSet set = parted_set(4, 30);
    const EvaluateOptions options{.points = {30, 7}, .of = 30, .draws = 4, .seed = 3};
    const std::vector<PartScores> scores = evaluate(made, set, options);
    EXPECT_EQ(scores[0].draws, 1);
    EXPECT_EQ(scores[1].draws, 4);
    EXPECT_EQ(scores[1].fewest, 7);
    EXPECT_EQ(scores[1].most, 7);
    int64_t right = 0;
    for (int64_t draw = 0; draw < 4; ++draw) {
        for (int64_t item = 0; item < 4; ++item) {
            std::vector<int32_t> chosen;
            CloudBatch one;
            one.add(seen_points(set.clouds, item, 7, draw, options, &chosen));
            const Array<float, 2> logits = made.logits(one, {});
            const data::PartCategory& category = set.categories[static_cast<size_t>(item % 2)];
            for (int64_t i = 0; i < 7; ++i) {
                const float* row = logits.data() + 5 * i;
                const auto best = std::max_element(row + category.begin, row + category.end) - row;
                right += best == set.parts[static_cast<size_t>(30 * item + chosen[static_cast<size_t>(i)])];
            }
        }
    }
    EXPECT_NEAR(scores[1].accuracy.mean, static_cast<double>(right) / (4 * 4 * 7), 1e-12);
    EXPECT_GT(right, 0);
    EXPECT_LT(right, 112);
}

TEST_F(EvaluateParts, OneCategoryAndAllParts) {
    const data::DataSet set = parted_set(4, 20);
    Segmenter all = plain(5), lamps = plain(3);
    EXPECT_EQ(match_parts(set, all)[1].parts.parts, (std::vector<int32_t>{2, 3, 4}));
    EXPECT_TRUE(contains(message_of([&] { match_parts(set, lamps); }), "5 parts in 2 categories, the network 3 parts"));
    const data::DataSet only = items_of_category(set, "LAMP");
    EXPECT_EQ(only.size(), 2);
    EXPECT_EQ(only.parts.size(), 40u);
    EXPECT_EQ(only.points_of(1)(3, 2), set.points_of(3)(3, 2));
    EXPECT_EQ(match_parts(only, lamps)[1].parts.parts, (std::vector<int32_t>{0, 1, 2}));
    EXPECT_EQ(match_parts(only, lamps)[1].shift, -2);
    EXPECT_EQ(evaluate(lamps, only, {.points = {0}})[0].shapes, (std::vector<int64_t>{2}));
    EXPECT_TRUE(contains(message_of([&] { match_parts(items_of_category(set, "cup"), lamps); }),
                         "cup has 2 parts, the network 3"));
    EXPECT_TRUE(contains(message_of([&] { items_of_category(set, "sofa"); }), "sofa"));
}

TEST_F(EvaluateParts, CategoriesAreMatchedByName) {
    const data::DataSet set = parted_set(4, 20);
    Segmenter named = told(R"({"LAMP": [0, 3], "cup": [3, 5]})"), wrong = told(R"({"lamp": [0, 2], "cup": [2, 5]})"),
              other = told(R"({"lamp": [0, 3], "mug": [3, 5]})"), bare = told("");
    EXPECT_EQ(match_parts(set, named)[0].category, 1u);
    EXPECT_EQ(match_parts(set, named)[0].shift, 3);
    EXPECT_TRUE(contains(message_of([&] { match_parts(set, wrong); }), "cup has 2 parts in the data set, 3"));
    EXPECT_TRUE(contains(message_of([&] { match_parts(set, other); }), "does not know the category cup"));
    EXPECT_EQ(match_parts(set, bare)[1].category, 1u);
    data::DataSet without = set;
    without.parts.clear();
    EXPECT_TRUE(contains(message_of([&] { match_parts(without, named); }), "has no parts to compare with"));
}

}  // namespace
}  // namespace stipple::tasks
