#include "stipple/tasks/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "stipple/ops/farthest_point_sample.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;

/// Clouds of `n` points each, of five classes, one after the other.
data::DataSet labelled_set(int64_t clouds, int64_t n) {
    data::DataSet set;
    set.layout = "made-up";
    set.classes = {"a", "b", "c", "d", "e"};
    const CloudBatch made = synthetic_clouds(clouds, n, 4);
    set.clouds.points = made.rows;
    set.clouds.offsets = made.offsets;
    for (int64_t i = 0; i < clouds; ++i) set.labels.push_back(static_cast<int32_t>(i % 5));
    return set;
}

class Evaluate : public testing::Test {
protected:
    Classifier classifier(RunnerOptions options = {}) const {
        options.device = "cpu";
        return {load_model_or_engine(model), options};
    }

    test::TemporaryFolder folder;
    std::string model = test::save_model(folder / "m.safetensors", "pointnet-classifier", 5);
};

TEST(EvaluateSpread, OfASample) {
    const double values[] = {1, 2, 3, 6};
    EXPECT_DOUBLE_EQ(spread_of(values).mean, 3);
    EXPECT_DOUBLE_EQ(spread_of(values).deviation, std::sqrt((4 + 1 + 0 + 9) / 3.0));
    EXPECT_DOUBLE_EQ(spread_of({values, 1}).mean, 1);
    EXPECT_EQ(spread_of({values, 1}).deviation, 0);
}

TEST(EvaluatePoints, AreChosenOfTheFirst) {
    const data::DataSet set = labelled_set(3, 50);
    EvaluateOptions options{.of = 20};
    std::vector<int32_t> first, second, other;
    seen_points(set.clouds, 1, 8, 0, options, &first);
    seen_points(set.clouds, 1, 8, 1, options, &second);
    seen_points(set.clouds, 2, 8, 0, options, &other);
    for (const int32_t index : first) EXPECT_LT(index, 20);
    EXPECT_EQ(std::set<int32_t>(first.begin(), first.end()).size(), 8u);
    EXPECT_NE(first, second) << "draws differ";
    EXPECT_NE(first, other) << "items differ";
    const Array<float, 2> again = seen_points(set.clouds, 1, 8, 0, options, &second);
    EXPECT_EQ(first, second);
    for (size_t i = 0; i < first.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            EXPECT_EQ(again.data()[3 * i + static_cast<size_t>(axis)], set.points_of(1)(first[i], axis));

    options.sample = "first";
    seen_points(set.clouds, 1, 3, 0, options, &first);
    EXPECT_EQ(first, (std::vector<int32_t>{0, 1, 2}));

    options.sample = "fps";
    seen_points(set.clouds, 1, 6, 0, options, &first);
    std::vector<int32_t> expected(6);
    ops::farthest_point_sample(View<const float, 2>(set.points_of(1).data(), {20, 3}), ops::Batch::single(6),
                               View<int32_t, 1>(expected.data(), {6}));
    EXPECT_EQ(first, expected);
    EXPECT_EQ(seen_points(set.clouds, 1, 0, 0, options).size(0), 20);
    options.of = 0;
    EXPECT_EQ(seen_points(set.clouds, 1, 0, 0, options).size(0), 50);
    EXPECT_EQ(seen_points(set.clouds, 1, 64, 0, options).size(0), 50);
}

TEST(EvaluatePoints, DrawsWhereTheyDiffer) {
    const data::DataSet set = labelled_set(3, 50);
    EXPECT_EQ(draws_of(set.clouds, 49, {.draws = 7}), 7);
    EXPECT_EQ(draws_of(set.clouds, 50, {.draws = 7}), 1);
    EXPECT_EQ(draws_of(set.clouds, 20, {.of = 20, .draws = 7}), 1);
    EXPECT_EQ(draws_of(set.clouds, 0, {.draws = 7}), 1);
    EXPECT_EQ(draws_of(set.clouds, 9, {.sample = "fps", .draws = 7}), 1);
}

TEST(EvaluateClasses, AreMatchedByName) {
    data::DataSet set = labelled_set(5, 4);
    EXPECT_EQ(match_classes(set, {"E", "x", "d", "c", "b", "a"}, 6), (std::vector<int32_t>{5, 4, 3, 2, 0}));
    EXPECT_EQ(match_classes(set, {}, 5), (std::vector<int32_t>{0, 1, 2, 3, 4}));
    EXPECT_TRUE(contains(message_of([&] {
                             match_classes(set, {"a", "b", "x", "d", "e"}, 5);
                         }),
                         "the network does not know the class c of the data set"));
    EXPECT_TRUE(contains(message_of([&] { match_classes(set, {}, 6); }), "has 5 classes, the network 6"));
    set.labels = {0, 1, 1, 3, 4};  // no item of class c: then it need not be known
    EXPECT_EQ(match_classes(set, {"a", "b", "x", "d", "e"}, 5)[2], -1);
    set.labels.clear();
    EXPECT_TRUE(contains(message_of([&] { match_classes(set, {}, 5); }), "has no classes to compare with"));
}

TEST(EvaluateClasses, OfEntriesOfAList) {
    const auto set = std::make_shared<data::DataSet>(labelled_set(5, 4)),
               unnamed = std::make_shared<data::DataSet>(labelled_set(5, 4));
    unnamed->classes.clear();
    io::Warnings warnings;
    const std::vector<data::CloudEntry> entries = {
        {"x/B/1.ply"}, {"x/other/1.ply"}, {"s", 4, set}, {"t", 1, unnamed}, {"t", 4, unnamed}};
    EXPECT_EQ(known_classes(entries, {"e", "a", "b", "c"}, warnings), (std::vector<int32_t>{2, -1, 0, 1, -1}));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(contains(warnings[0], "t: nothing names its classes"));
}

TEST(EvaluateClasses, ScoresOfAnswers) {
    const int32_t answers[] = {0, 1, 1, 2, 0, 2}, truth[] = {0, 0, 1, 1, -1, 1};
    const ClassScores scores = scores_of(answers, truth, {"a", "b", "c"});
    EXPECT_EQ(scores.confusion.total(), 5);
    EXPECT_DOUBLE_EQ(scores.accuracy.mean, 2.0 / 5);
    EXPECT_DOUBLE_EQ(scores.class_accuracy.mean, (1.0 / 2 + 1.0 / 3) / 2);
    EXPECT_EQ(scores.draws, 1);
}

TEST_F(Evaluate, AgreesWithTheClassifierItself) {
    data::DataSet set = labelled_set(12, 40);
    Classifier made = classifier({.batch = 5});
    std::vector<int32_t> answers;
    for (int64_t i = 0; i < 12; ++i) {
        CloudBatch one;
        one.add(seen_points(set.clouds, i, 0, 0, {}));
        const std::vector<float> logits = made.run(one);
        answers.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    // Labels of which a known number is right: three of four clouds, in a shuffled order of names.
    const std::vector<std::string> names = {"c", "a", "e", "b", "d"};
    const std::vector<int32_t> to_network = match_classes(set, names, 5);
    for (size_t i = 0; i < 12; ++i) {
        const int32_t wanted = i % 4 == 3 ? (answers[i] + 1) % 5 : answers[i];
        set.labels[i] =
            static_cast<int32_t>(std::find(to_network.begin(), to_network.end(), wanted) - to_network.begin());
    }
    int64_t advanced = 0;
    const std::vector<ClassScores> scores =
        evaluate(made, set, names, {.points = {0}}, [&](int64_t clouds) { advanced += clouds; });
    ASSERT_EQ(scores.size(), 1u);
    EXPECT_DOUBLE_EQ(scores[0].accuracy.mean, 0.75);
    EXPECT_EQ(scores[0].draws, 1);
    EXPECT_EQ(scores[0].most, 40);
    EXPECT_EQ(scores[0].confusion.total(), 12);
    EXPECT_EQ(scores[0].confusion.classes, names);
    EXPECT_EQ(advanced, 12);
}

TEST_F(Evaluate, DrawsAndSizes) {
    const data::DataSet set = labelled_set(10, 60);
    Classifier made = classifier();
    const EvaluateOptions options{.points = {40, 8, 200}, .of = 50, .draws = 3, .seed = 5};
    EXPECT_TRUE(contains(message_of([&] { evaluate(made, set, {}, options); }), "200 points of the first 50"));
    EvaluateOptions valid = options;
    valid.points = {40, 8, 50};
    const std::vector<ClassScores> scores = evaluate(made, set, {}, valid);
    EXPECT_EQ(scores[0].draws, 3);
    EXPECT_EQ(scores[0].confusion.total(), 30);
    EXPECT_EQ(scores[2].draws, 1);
    EXPECT_EQ(scores[2].fewest, 50);
    double mean = 0;
    for (int64_t i = 0; i < 5; ++i) mean += static_cast<double>(scores[0].confusion.counts.view()(i, i)) / 30;
    EXPECT_NEAR(scores[0].accuracy.mean, mean, 1e-12);
    Classifier small = classifier({.batch = 3});
    EXPECT_EQ(evaluate(small, set, {}, valid)[1].confusion.counts.span()[3], scores[1].confusion.counts.span()[3]);
    for (const EvaluateOptions& bad :
         {EvaluateOptions{.points = {}}, EvaluateOptions{.points = {-1}}, EvaluateOptions{.sample = "best"},
          EvaluateOptions{.draws = 0}, EvaluateOptions{.of = -1}})
        EXPECT_NE(message_of([&] { evaluate(made, set, {}, bad); }), "");
}

}  // namespace
}  // namespace stipple::tasks
