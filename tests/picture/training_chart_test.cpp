#include "stipple/picture/training_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stipple/io/image_file.h"
#include "tests/picture/scene.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::picture {
namespace {

TrainingCurves twenty_epochs() {
    TrainingCurves curves;
    curves.title = "a run";
    curves.losses = {{"training", {}, {}}, {"held out", {}, {}}};
    curves.scores = {{"held out", {}, {}}};
    for (int epoch = 1; epoch <= 20; ++epoch) {
        for (TrainingCurve* curve : {&curves.losses[0], &curves.losses[1], &curves.scores[0]})
            curve->epochs.push_back(epoch);
        curves.losses[0].values.push_back(3 * std::exp(-0.2 * epoch));
        curves.losses[1].values.push_back(3 * std::exp(-0.15 * epoch) + 0.3);
        curves.scores[0].values.push_back(0.9 - 0.6 * std::exp(-0.3 * epoch));
    }
    return curves;
}

Rgb curve_pixel(const Chart& chart, double epoch, double part_of_height) {
    const double x = chart.plot.x + (epoch - chart.x.low) / (chart.x.high - chart.x.low) * chart.plot.width;
    const double y = chart.plot.y + (1 - part_of_height) * chart.plot.height;
    return pixel(chart.image, static_cast<int64_t>(x), static_cast<int64_t>(y));
}

TEST(TrainingChart, LossesAreLogarithmicAndScoresInPerCent) {
    ChartStyle style;
    style.line_width = 5;
    const TrainingCurves curves = twenty_epochs();
    const Chart drawn = training_chart(curves, style);
    EXPECT_LE(drawn.y.low, curves.losses[0].values.back());
    EXPECT_GT(drawn.y.low, 0);
    EXPECT_GE(drawn.right.high, 90 - 0.2);
    EXPECT_LE(drawn.right.high, 100);
    const double loss = std::log(curves.losses[0].values[9] / drawn.y.low) / std::log(drawn.y.high / drawn.y.low);
    EXPECT_EQ(curve_pixel(drawn, 10, loss), chart_color(0, false));
    const double score = (100 * curves.scores[0].values[4] - drawn.right.low) / (drawn.right.high - drawn.right.low);
    EXPECT_EQ(curve_pixel(drawn, 5, score), chart_color(2, false));
}

TEST(TrainingChart, TakesEveryStateOfARun) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    TrainingCurves curves;
    EXPECT_ERROR(training_chart(curves, {}), bad_argument, "");
    curves.losses = {{"loss", {}, {}}};  // before the first epoch
    EXPECT_NO_THROW(training_chart(curves, {}));
    curves.losses[0] = {"loss", {1}, {nan}};
    EXPECT_NO_THROW(training_chart(curves, {}));
    curves.losses[0] = {"loss", {1}, {2.5}};
    EXPECT_GT(training_chart(curves, {}).y.low, 0);
    curves.losses[0] = {"loss", {1, 2, 3}, {2.5, 0, -1.5}};  // a negative log-likelihood
    EXPECT_LE(training_chart(curves, {}).y.low, -1.5);
    curves.losses.clear();
    curves.scores = {{"accuracy", {1, 2}, {0.5, 0.75}}};
    EXPECT_GE(training_chart(curves, {}).right.high, 75);
    curves.scores[0].values.pop_back();
    EXPECT_ERROR(training_chart(curves, {}), bad_argument, "accuracy");
}

TEST(TrainingChart, SavedAsPngReadsBackWithTheSamePixels) {
    const test::TemporaryFolder folder;
    const Image image = training_chart(twenty_epochs(), {}).image;
    io::save_png(folder / "run.png", image, Overwrite::refuse);
    EXPECT_TRUE(same_pixels(io::load_image(folder / "run.png"), image));
    EXPECT_LT(test::read_file(folder / "run.png").size(), 200'000u);
}

}  // namespace
}  // namespace stipple::picture
