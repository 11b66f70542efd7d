#include "stipple/metrics/classification.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

TEST(MetricsClassification, AccuraciesOfAConfusionMatrix) {
    const int32_t truth[] = {0, 0, 0, 0, 1, 1, 3}, predictions[] = {0, 0, 0, 1, 1, 0, 2};
    const metrics::Confusion confusion = metrics::confusion(predictions, truth, {"chair", "table", "lamp", "sofa"});
    EXPECT_EQ(confusion.total(), 7);
    EXPECT_EQ(confusion.counts.view()(0, 1), 1) << "rows are the truth";
    EXPECT_EQ(confusion.counts.view()(3, 2), 1);
    EXPECT_DOUBLE_EQ(metrics::overall_accuracy(confusion), 4 / 7.0);
    const std::vector<double> classes = metrics::class_accuracies(confusion);
    EXPECT_DOUBLE_EQ(classes[0], 0.75);
    EXPECT_DOUBLE_EQ(classes[1], 0.5);
    EXPECT_TRUE(std::isnan(classes[2])) << "the truth has no lamp";
    EXPECT_EQ(classes[3], 0);
    EXPECT_DOUBLE_EQ(metrics::mean_accuracy(confusion), 1.25 / 3) << "over the classes that the truth has";
    EXPECT_EQ(metrics::to_text(confusion),
              "     truth   acc  0 1 2 3\n"
              "   0 chair   75%  3 1 0 0\n"
              "   1 table   50%  1 1 0 0\n"
              "   2  lamp     -  0 0 0 0\n"
              "   3  sofa    0%  0 0 1 0\n");
}

TEST(MetricsClassification, NothingHasNoAccuracy) {
    const metrics::Confusion confusion = metrics::confusion({}, {}, {"a", "b"});
    EXPECT_TRUE(std::isnan(metrics::overall_accuracy(confusion)));
    EXPECT_TRUE(std::isnan(metrics::mean_accuracy(confusion)));
}

TEST(MetricsClassification, NamesWhatIsWrong) {
    const int32_t two[] = {0, 1}, bad[] = {0, 2}, negative[] = {-1, 0};
    const auto message = [](std::span<const int32_t> p, std::span<const int32_t> t) {
        return bad_argument_of([&] { metrics::confusion(p, t, {"a", "b"}); });
    };
    EXPECT_EQ(message(two, {}), "confusion: 2 predictions for 0 labels");
    EXPECT_EQ(message(two, bad), "confusion: label 1 is 2, of 2 classes");
    EXPECT_EQ(message(negative, two), "confusion: prediction 0 is -1, of 2 classes");
}

}  // namespace
}  // namespace stipple::test
