#include "stipple/picture/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "stipple/core/error.h"
#include "tests/picture/scene.h"

namespace stipple::picture {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

Series series_of(const char* name, std::vector<double> x, std::vector<double> y) {
    Series series;
    series.name = name;
    series.x = std::move(x);
    series.y = std::move(y);
    return series;
}

double part_of(double value, AxisRange range, bool logarithmic = false) {
    return logarithmic ? std::log(value / range.low) / std::log(range.high / range.low)
                       : (value - range.low) / (range.high - range.low);
}

// The pixel of a point of the data, after the formula of the header.
Rgb at_data(const Chart& chart, double x, double y, AxisRange y_range, bool logarithmic = false) {
    const double px = chart.plot.x + part_of(x, chart.x) * chart.plot.width;
    const double py = chart.plot.y + (1 - part_of(y, y_range, logarithmic)) * chart.plot.height;
    return pixel(chart.image, static_cast<int64_t>(px), static_cast<int64_t>(py));
}

int64_t count_color(const Image& image, const Rect& where, Rgb color) {
    int64_t count = 0;
    for (auto y = static_cast<int64_t>(where.y); y < static_cast<int64_t>(where.y + where.height); ++y)
        for (auto x = static_cast<int64_t>(where.x); x < static_cast<int64_t>(where.x + where.width); ++x)
            count += pixel(image, x, y) == color;
    return count;
}

Rect whole(const Image& image) {
    return {0, 0, static_cast<double>(image.width()), static_cast<double>(image.height())};
}

ChartStyle thick_style() {
    ChartStyle style;
    style.line_width = 5;
    style.grid = false;
    return style;
}

TEST(ChartLines, PassWhereTheDataSay) {
    LineChart chart;
    chart.series = {series_of("", {0, 10, 20, 40}, {1, 3, -2, 8})};
    const Chart drawn = draw_chart(chart, thick_style());
    ASSERT_EQ(drawn.image.width(), 900);
    ASSERT_EQ(drawn.image.height(), 500);
    EXPECT_LE(drawn.x.low, 0);
    EXPECT_LE(drawn.y.low, -2);
    const Rgb color = chart_color(0, false);
    for (auto [x, y] :
         {std::pair{0.0, 1.0}, {10.0, 3.0}, {20.0, -2.0}, {40.0, 8.0}, {5.0, 2.0}, {15.0, 0.5}, {30.0, 3.0}})
        EXPECT_EQ(at_data(drawn, x, y, drawn.y), color) << x << " " << y;
    for (auto [x, y] : {std::pair{5.0, 4.0}, {20.0, 0.0}, {35.0, 1.0}})
        EXPECT_EQ(at_data(drawn, x, y, drawn.y), kWhite) << x << " " << y;
    EXPECT_EQ(drawn.legend.width, 0);
}

TEST(ChartLines, AreSmoothAndDensePointsDoNotMakeThemHeavier) {
    LineChart two, many;
    two.series = {series_of("", {0, 1000}, {0, 100})};
    many.series = {series_of("", {}, {})};
    for (int i = 0; i <= 20000; ++i) {
        many.series[0].x.push_back(i / 20.0);
        many.series[0].y.push_back(i / 200.0);
    }
    two.x.range = many.x.range = AxisRange{-50, 1050};
    const auto ink = [](const Chart& drawn) {
        double sum = 0;
        for (auto y = static_cast<int64_t>(drawn.plot.y); y < static_cast<int64_t>(drawn.plot.y + drawn.plot.height);
             ++y)
            for (auto x = static_cast<int64_t>(drawn.plot.x); x < static_cast<int64_t>(drawn.plot.x + drawn.plot.width);
                 ++x)
                sum += (255.0 - pixel(drawn.image, x, y).r) / 255;
        return sum;
    };
    const Chart a = draw_chart(two, thick_style()), b = draw_chart(many, thick_style());
    EXPECT_NEAR(ink(b) / ink(a), 1, 0.005);
    EXPECT_GT(drawn_in(a.image, 200, 100, 400, 250),
              count_color(a.image, {200, 100, 400, 250}, chart_color(0, false)) + 50);
}

TEST(ChartLines, DashesLeaveGapsOfTheirLength) {
    Image image(120, 20, 3);
    fill(image, kWhite);
    const std::array<double, 2> points[] = {{10, 10}, {47, 10}, {110, 10}};
    draw_polyline(image, points, 4, kRed, {0, 0, 120, 20}, 12, 8);
    for (int64_t x = 12; x < 109; ++x) {
        const int64_t phase = (x - 10) % 20;
        if (phase < 1 || phase == 11 || phase == 12 || phase == 19) continue;  // soft ends
        EXPECT_EQ(pixel(image, x, 10), phase < 11 ? kRed : kWhite) << x;
    }
    // Clipped.
    fill(image, kWhite);
    draw_polyline(image, points, 4, kRed, {30, 0, 20, 20});
    EXPECT_EQ(drawn_in(image, 0, 0, 30, 20), 0);
    EXPECT_EQ(drawn_in(image, 50, 0, 70, 20), 0);
    EXPECT_EQ(drawn_in(image, 30, 0, 20, 20), 80);
    // The second six series are dashed.
    LineChart chart;
    for (int i = 0; i < 7; ++i) chart.series.push_back(series_of("", {0, 1}, {i * 1.0, i * 1.0}));
    const Chart drawn = draw_chart(chart, thick_style());
    const double height = drawn.plot.height / 6;
    const int64_t solid =
        count_color(drawn.image, {drawn.plot.x, drawn.plot.y + 5.5 * height, 800, height}, chart_color(0, false));
    const int64_t dashed =
        count_color(drawn.image, {drawn.plot.x, drawn.plot.y - 4, 800, height / 2}, chart_color(0, false));
    EXPECT_GT(dashed, solid / 2);
    EXPECT_LT(dashed, solid * 3 / 4);
}

TEST(ChartLines, WhatIsNotFiniteLeavesAGapAndDoesNotStretchTheAxes) {
    LineChart chart;
    chart.series = {series_of("", {0, 1, 2, 3, 4, 5, 1000}, {1, 1, kNoNumber, 1, 1, 1, HUGE_VAL})};
    chart.y.range = AxisRange{0, 2};
    const Chart drawn = draw_chart(chart, thick_style());
    const Rgb color = chart_color(0, false);
    EXPECT_LT(drawn.x.high, 6);
    EXPECT_EQ(at_data(drawn, 0.5, 1, drawn.y), color);
    for (double x : {1.2, 2.0, 2.8}) EXPECT_EQ(at_data(drawn, x, 1, drawn.y), kWhite) << x;
    EXPECT_EQ(at_data(drawn, 3.5, 1, drawn.y), color);
}

TEST(ChartLines, OnePointIsAMarkerAndWithoutPointsThereIsOnlyAName) {
    LineChart chart;
    chart.series = {series_of("one", {3}, {7}), series_of("none", {}, {})};
    const Chart drawn = draw_chart(chart, thick_style());
    EXPECT_EQ(at_data(drawn, 3, 7, drawn.y), chart_color(0, false));
    const int64_t first = count_color(drawn.image, drawn.plot, chart_color(0, false));
    const int64_t listed = count_color(drawn.image, drawn.legend, chart_color(0, false));
    EXPECT_GT(first - listed, 150);  // a disc of 17 pixels
    EXPECT_LT(first - listed, 300);
    const int64_t second = count_color(drawn.image, drawn.legend, chart_color(1, false));
    EXPECT_GT(second, 40);
    EXPECT_EQ(count_color(drawn.image, whole(drawn.image), chart_color(1, false)), second);
}

TEST(ChartLines, TheLegendHidesNothing) {
    const Rgb colors[] = {chart_color(0, false), chart_color(1, false)};
    // A rise and a fall leave the upper or the lower left free; a zigzag leaves nothing.
    for (int shape = 0; shape < 3; ++shape) {
        LineChart chart;
        chart.series = {series_of("first", {}, {}), series_of("second", {}, {})};
        for (int i = 0; i <= 60; ++i)
            for (int s = 0; s < 2; ++s) {
                const double zigzag = (i + s) % 2 ? 0 : 60, slope = shape == 0 ? i * i : (60 - i) * (60 - i);
                chart.series[static_cast<size_t>(s)].x.push_back(i);
                chart.series[static_cast<size_t>(s)].y.push_back(shape == 2 ? zigzag : slope / 60.0 + s);
            }
        ChartStyle style = thick_style();
        const Chart drawn = draw_chart(chart, style);
        const bool inside = drawn.legend.y >= drawn.plot.y;
        EXPECT_EQ(inside, shape != 2);
        for (Rgb color : colors) EXPECT_GT(count_color(drawn.image, drawn.legend, color), 40);
        style.legend = LegendPlace::none;
        const Chart bare = draw_chart(chart, style);
        EXPECT_EQ(bare.legend.width, 0);
        if (inside) {
            EXPECT_EQ(bare.plot.height, drawn.plot.height);
            const auto part = [&](double v) { return static_cast<int64_t>(v); };
            EXPECT_EQ(drawn_in(bare.image, part(drawn.legend.x), part(drawn.legend.y), part(drawn.legend.width),
                               part(drawn.legend.height)),
                      0);
        } else {
            EXPECT_LE(drawn.legend.y + drawn.legend.height, drawn.plot.y);
        }
    }
}

TEST(ChartLines, ASecondAxisHasItsOwnRange) {
    LineChart chart;
    chart.series = {series_of("loss", {0, 1, 2}, {4, 1, 2}), series_of("accuracy", {0, 1, 2}, {20, 70, 95})};
    const Chart single = draw_chart(chart, thick_style());
    EXPECT_EQ(single.y, (AxisRange{0, 100}));
    chart.series[1].right = true;
    chart.right.label = "accuracy";
    const Chart drawn = draw_chart(chart, thick_style());
    EXPECT_EQ(drawn.y, (AxisRange{0, 4}));
    EXPECT_EQ(drawn.right, (AxisRange{0, 100}));
    EXPECT_LT(drawn.plot.width, single.plot.width);
    EXPECT_EQ(at_data(drawn, 1, 1, drawn.y), chart_color(0, false));
    EXPECT_EQ(at_data(drawn, 1, 70, drawn.right), chart_color(1, false));
    // Numbers and label are right of the plot, in the colour of the only series there.
    const double right = drawn.plot.x + drawn.plot.width + 3;
    EXPECT_GT(count_color(drawn.image, {right, 0, 900 - right, 500}, chart_color(1, false)), 40);
    EXPECT_EQ(count_color(drawn.image, {right, 0, 900 - right, 500}, chart_color(0, false)), 0);
}

TEST(ChartLines, LogarithmicAxes) {
    LineChart chart;
    chart.y.logarithmic = true;
    chart.series = {series_of("", {0, 1, 2, 3, 4, 5}, {1e-3, 1e-1, 10, 0, 1, 1})};
    const Chart drawn = draw_chart(chart, thick_style());
    EXPECT_EQ(drawn.y, (AxisRange{1e-3, 10}));
    const Rgb color = chart_color(0, false);
    for (auto [x, y] : {std::pair{0.5, 1e-2}, {1.0, 1e-1}, {1.5, 1.0}, {4.5, 1.0}})
        EXPECT_EQ(at_data(drawn, x, y, drawn.y, true), color) << x;
    for (double y : {1e-2, 1e-1, 1.0}) EXPECT_EQ(at_data(drawn, 3, y, drawn.y, true), kWhite) << y;
}

TEST(ChartLines, BackgroundsGridAndSameBits) {
    LineChart chart;
    chart.title = "A title";
    chart.series = {series_of("a", {0, 1, 2}, {0, 1, 0})};
    ChartStyle style;
    const Chart light = draw_chart(chart, style);
    EXPECT_TRUE(same_pixels(light.image, draw_chart(chart, style).image));
    EXPECT_EQ(pixel(light.image, 0, 0), kWhite);
    style.grid = false;
    const Chart bare = draw_chart(chart, style);
    EXPECT_LT(drawn_in(bare.image, 0, 0, 900, 500), drawn_in(light.image, 0, 0, 900, 500) - 2000);
    style.dark = true;
    EXPECT_EQ(pixel(draw_chart(chart, style).image, 0, 0), (Rgb{22, 24, 29}));
    style.background = kBlue;
    EXPECT_EQ(pixel(draw_chart(chart, style).image, 0, 0), kBlue);
    std::set<std::array<uint8_t, 3>> colors;
    for (bool dark : {false, true})
        for (int64_t i = 0; i < 6; ++i)
            colors.insert({chart_color(i, dark).r, chart_color(i, dark).g, chart_color(i, dark).b});
    EXPECT_GE(colors.size(), 11u);
}

TEST(ChartLines, AnySizeAndAnyNumbersCanBeDrawn) {
    LineChart chart;
    chart.title = "A title that is much too long for a chart of so few pixels, and goes on";
    chart.x = {"a label that is long, too", "unit"};
    chart.y = {"another label that is long", "unit"};
    for (int i = 0; i < 40; ++i)
        chart.series.push_back(series_of("name of a series", {1e300, -1e300}, {-1e300, 1e300}));
    chart.series.push_back(series_of("tiny", {0, 1e-320}, {0, -1e-320}));
    for (auto [width, height] : {std::pair{160, 120}, {160, 900}, {1600, 120}, {900, 500}}) {
        ChartStyle style;
        style.width = width, style.height = height;
        const Chart drawn = draw_chart(chart, style);
        EXPECT_EQ(drawn.image.width(), width);
        EXPECT_GT(drawn_in(drawn.image, 0, 0, width, height), 500);
    }
    // A range far from and far below the data.
    chart.x.range = AxisRange{0, 1};
    chart.y.range = AxisRange{-1e-3, 1e-3};
    EXPECT_GT(drawn_in(draw_chart(chart, {}).image, 0, 0, 900, 500), 500);
}

TEST(ChartBars, StandWhereTheirValuesSay) {
    BarChart chart;
    chart.groups = {"a", "b"};
    chart.series = {{"first", {4, kNoNumber}, {}}, {"second", {-2, 3}, kRed}};
    chart.value_labels = false;
    const Chart drawn = draw_chart(chart, thick_style());
    ASSERT_EQ(drawn.x, (AxisRange{0, 2}));
    const Rgb first = chart_color(0, false);
    for (double y : {0.2, 3.9}) EXPECT_EQ(at_data(drawn, 0.3, y, drawn.y), first) << y;
    EXPECT_EQ(at_data(drawn, 0.3, -0.3, drawn.y), kWhite);
    EXPECT_EQ(at_data(drawn, 0.7, -1.9, drawn.y), kRed);
    EXPECT_EQ(at_data(drawn, 0.7, 0.3, drawn.y), kWhite);
    EXPECT_EQ(at_data(drawn, 1.3, 1, drawn.y), kWhite);
    EXPECT_EQ(at_data(drawn, 1.7, 2.9, drawn.y), kRed);
    EXPECT_GT(count_color(drawn.image, drawn.legend, kRed), 40);
}

TEST(ChartBars, ValuesAreWrittenAboveThem) {
    BarChart chart;
    chart.groups = {"a", "b", "c"};
    chart.series = {{"", {4, 2, 1}, kRed}};
    chart.y.range = AxisRange{0, 5};
    const Chart with = draw_chart(chart, thick_style());
    chart.value_labels = false;
    const Chart without = draw_chart(chart, thick_style());
    const auto above = [](const Chart& drawn, int group, double value) {
        const double x = drawn.plot.x + drawn.plot.width / 3 * group;
        const double y = drawn.plot.y + (1 - value / 5) * drawn.plot.height;
        return drawn_in(drawn.image, static_cast<int64_t>(x) + 2, static_cast<int64_t>(y) - 25,
                        static_cast<int64_t>(drawn.plot.width / 3) - 4, 24);
    };
    for (auto [group, value] : {std::pair{0, 4.0}, {1, 2.0}, {2, 1.0}}) {
        EXPECT_GT(above(with, group, value), 10);
        EXPECT_EQ(above(without, group, value), 0);
    }
    // Logarithmic bars begin at the lower edge.
    chart.y = {};
    chart.y.logarithmic = true;
    chart.series[0].values = {1000, 10, 0};
    const Chart drawn = draw_chart(chart, thick_style());
    EXPECT_EQ(at_data(drawn, 0.5, 900, drawn.y, true), kRed);
    EXPECT_EQ(at_data(drawn, 1.5, 50, drawn.y, true), kWhite);
    EXPECT_EQ(at_data(drawn, 2.5, drawn.y.low * 1.1, drawn.y, true), kWhite);
}

// === Refusals

template <class Draw>
void expect_refused(const Draw& draw, const std::string& words) {
    try {
        draw();
        ADD_FAILURE() << "accepted: " << words;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        EXPECT_NE(error.message().find(words), std::string::npos) << error.message();
    }
}

TEST(ChartRefusals, SayWhatIsWrong) {
    LineChart good;
    good.series = {series_of("a", {0, 1}, {-1, 0})};
    const auto refused = [&](const auto& change, const std::string& words) {
        LineChart chart = good;
        ChartStyle style;
        change(chart, style);
        expect_refused([&] { draw_chart(chart, style); }, words);
    };
    EXPECT_NO_THROW(draw_chart(good, {}));
    refused([](LineChart& c, ChartStyle&) { c.series.clear(); }, "without series");
    refused([](LineChart& c, ChartStyle&) { c.series[0].x.pop_back(); }, "series 0 'a' has 1 x and 2 y");
    refused([](LineChart&, ChartStyle& s) { s.width = 0; }, "0 x 500 pixels");
    refused([](LineChart&, ChartStyle& s) { s.height = -3; }, "900 x -3 pixels");
    refused([](LineChart&, ChartStyle& s) { s.width = s.height = 16384; }, "2^27");
    refused([](LineChart&, ChartStyle& s) { s.text_size = kNoNumber; }, "text of nan");
    refused([](LineChart&, ChartStyle& s) { s.line_width = -1; }, "lines of -1");
    refused([](LineChart& c, ChartStyle&) { c.y.logarithmic = true; }, "no value on it is positive");
    refused([](LineChart& c, ChartStyle&) { c.right.logarithmic = c.series[0].right = true; }, "the right axis");
    refused([](LineChart& c, ChartStyle&) { c.x.range = AxisRange{1, 1}; }, "range 1 to 1 of the x axis");
    refused([](LineChart& c, ChartStyle&) { c.y.range = AxisRange{0, kNoNumber}; }, "range 0 to nan of the y axis");
    refused(
        [](LineChart& c, ChartStyle&) {
            c.y.logarithmic = true;
            c.series[0].y = {1, 2};
            c.y.range = AxisRange{0, 1};
        },
        "must be positive");
}

TEST(ChartRefusals, OfBars) {
    BarChart chart;
    expect_refused([&] { draw_chart(chart, {}); }, "without series");
    chart.series = {{"a", {}, {}}};
    expect_refused([&] { draw_chart(chart, {}); }, "without groups");
    chart.groups = {"one"};
    expect_refused([&] { draw_chart(chart, {}); }, "has 0 values for 1 groups");
    chart.series[0].values = {0};
    EXPECT_NO_THROW(draw_chart(chart, {}));
    chart.y.logarithmic = true;
    expect_refused([&] { draw_chart(chart, {}); }, "no value on it is positive");
}

}  // namespace
}  // namespace stipple::picture
