#include "stipple/metrics/segmentation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::AbsentPart;
using metrics::PartCategory;
using metrics::PartIou;
using metrics::SegmentedShape;

const std::vector<PartCategory> kCategories = {{"mug", {0, 1}}, {"chair", {2, 3, 4}}, {"lamp", {5}}};

TEST(MetricsSegmentation, InstanceAndClassMeansByHand) {
    const int32_t mug[] = {0, 0, 0, 1}, mug_guess[] = {0, 0, 1, 1};      // IoU 2/3 and 1/2
    const int32_t plain[] = {0, 0}, plain_guess[] = {0, 0};              // 1, and part 1 is in neither: 1
    const int32_t chair[] = {2, 2, 3, 3}, chair_guess[] = {2, 2, 2, 9};  // 2/3, 0 and absent: 1
    const std::vector<SegmentedShape> shapes = {{0, mug_guess, mug}, {0, plain_guess, plain}, {1, chair_guess, chair}};
    const double first = (2 / 3.0 + 0.5) / 2, third = (2 / 3.0 + 0 + 1) / 3;
    const PartIou iou = metrics::part_iou(shapes, kCategories);
    EXPECT_DOUBLE_EQ(iou.shapes[0], first);
    EXPECT_DOUBLE_EQ(iou.shapes[1], 1);
    EXPECT_DOUBLE_EQ(iou.shapes[2], third) << "an id of no part is wrong and in no union";
    EXPECT_DOUBLE_EQ(iou.instance, (first + 1 + third) / 3);
    EXPECT_DOUBLE_EQ(iou.categories[0], (first + 1) / 2);
    EXPECT_DOUBLE_EQ(iou.category, ((first + 1) / 2 + third) / 2) << "no lamps: they do not count";
    EXPECT_TRUE(std::isnan(iou.categories[2]));
    EXPECT_EQ(iou.shape_count, (std::vector<int64_t>{2, 1, 0}));
    EXPECT_DOUBLE_EQ(iou.accuracy, 7 / 10.0);
    const PartIou without = metrics::part_iou(shapes, kCategories, AbsentPart::left_out);
    EXPECT_DOUBLE_EQ(without.shapes[1], 1);
    EXPECT_DOUBLE_EQ(without.shapes[2], (2 / 3.0 + 0) / 2);
}

TEST(MetricsSegmentation, TheBestPartIsOneOfTheCategory) {
    const float scores[] = {9, 0, 1, 3, 2, 9, 9, 9, 5, 5, 5, 9, 0, 0, NAN, -1, -2, 0};
    const View<const float, 2> view(scores, {3, 6});
    EXPECT_EQ(metrics::best_parts(view, kCategories[1]), (std::vector<int32_t>{3, 2, 3}));
    EXPECT_EQ(bad_argument_of([&] {
                  metrics::best_parts(view, {"x", {6}});
              }),
              "best_parts: part 6 of category x, scores of 6");
    EXPECT_EQ(bad_argument_of([&] { metrics::best_parts(view, {"x", {}}); }), "best_parts: category x has no parts");
}

TEST(MetricsSegmentation, NamesWhatIsWrong) {
    const int32_t two[] = {0, 1}, one[] = {0}, chair[] = {2, 2};
    const auto message = [](const SegmentedShape& shape) {
        return bad_argument_of([&] { metrics::part_iou({&shape, 1}, kCategories); });
    };
    EXPECT_EQ(bad_argument_of([] { metrics::part_iou({}, kCategories); }), "part_iou: no shapes");
    EXPECT_EQ(message({3, two, two}), "part_iou: shape 0 is of category 3, of 3");
    EXPECT_EQ(message({0, two, one}), "part_iou: shape 0 has 2 predictions for 1 labels");
    EXPECT_EQ(message({0, {}, {}}), "part_iou: shape 0 has no points");
    EXPECT_EQ(message({0, two, chair}), "part_iou: point 0 of shape 0 is of part 2, which category mug does not have");
}

}  // namespace
}  // namespace stipple::test
