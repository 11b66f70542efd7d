#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stipple/core/rng.h"
#include "stipple/picture/chart/frame.h"
#include "stipple/picture/chart/ticks.h"

namespace stipple::picture {
namespace {

using chart::linear_range;
using chart::linear_ticks;
using chart::log_range;
using chart::log_ticks;
using chart::widened;

bool is_one_two_five(double value) {
    const double digits = value / std::pow(10.0, std::floor(std::log10(value) + 1e-9));
    return std::abs(digits - 1) < 1e-6 || std::abs(digits - 2) < 1e-6 || std::abs(digits - 5) < 1e-6;
}

// "-1.5x10^3" with the signs of the font, as a number.
double number_of(std::string text) {
    const auto replace = [&](const std::string& from, const std::string& to) {
        for (size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
    };
    replace("\xe2\x88\x92", "-");
    replace(
        "\xc3\x97"
        "10^",
        "e");
    if (text.starts_with("10^")) text.replace(0, 3, "1e");
    return std::stod(text);
}

std::vector<AxisRange> many_ranges() {
    std::vector<AxisRange> ranges = {{0, 1},          {-1, 1},        {0.2, 0.93},   {1e-200, 3e-200},
                                     {-1e300, 1e300}, {1e6, 1e6 + 3}, {-7e-5, 2e-5}, {999, 1001},
                                     {0, 250},        {-3, -1},       {0.1, 0.3},    {1e8, 1e8 + 1}};
    const Rng rng(11);
    for (int64_t i = 0; i < 400; ++i) {
        const double middle = (2 * static_cast<double>(rng.uniform(3 * i)) - 1) *
                              std::pow(10.0, 40 * static_cast<double>(rng.uniform(3 * i + 1)) - 20);
        const double span = std::abs(middle) * std::pow(10.0, 8 * static_cast<double>(rng.uniform(3 * i + 2)) - 6);
        ranges.push_back({middle - span, middle + span});
    }
    return ranges;
}

TEST(ChartTicks, LinearOnesAreRoundFewDistinctAndSayTheirValue) {
    for (const AxisRange& range : many_ranges())
        for (int most : {3, 5, 8}) {
            SCOPED_TRACE(fmt::format("{} to {}, {}", range.low, range.high, most));
            const std::vector<Tick> ticks = linear_ticks(range, most);
            const double span = range.high - range.low;
            ASSERT_LE(static_cast<int>(ticks.size()), most);
            ASSERT_GE(ticks.size(), most == 8 ? 3u : 1u);
            std::set<std::string> texts;
            for (size_t i = 0; i < ticks.size(); ++i) {
                ASSERT_GE(ticks[i].value, range.low - 1e-6 * span);
                ASSERT_LE(ticks[i].value, range.high + 1e-6 * span);
                ASSERT_NEAR(number_of(ticks[i].text) / span, ticks[i].value / span, 1e-5);
                texts.insert(ticks[i].text);
            }
            ASSERT_EQ(texts.size(), ticks.size());
            if (ticks.size() < 2) continue;
            const double step = (ticks.back().value - ticks[0].value) / static_cast<double>(ticks.size() - 1);
            ASSERT_TRUE(is_one_two_five(step) || std::abs(range.low) / span > 1e5) << step;
            for (size_t i = 1; i < ticks.size(); ++i)
                ASSERT_NEAR((ticks[i].value - ticks[i - 1].value) / step, 1, 1e-5);
        }
}

TEST(ChartTicks, TextsArePlainWhereTheyCanBe) {
    const auto texts = [](AxisRange range, double min_step = 0) {
        std::string all;
        for (const Tick& tick : linear_ticks(range, 8, min_step)) all += tick.text + " ";
        return all;
    };
    EXPECT_EQ(texts({0, 1}), "0 0.2 0.4 0.6 0.8 1.0 ");
    EXPECT_EQ(texts({-1, 1}),
              "\xe2\x88\x92"
              "1.0 \xe2\x88\x92"
              "0.5 0 0.5 1.0 ");
    EXPECT_EQ(texts({0, 200000}), "0 50000 100000 150000 200000 ");
    EXPECT_EQ(texts({0, 3}), "0 0.5 1.0 1.5 2.0 2.5 3.0 ");
    EXPECT_EQ(texts({0, 3}, 1), "0 1 2 3 ");
    EXPECT_EQ(texts({0, 3e7}),
              "0 0.5\xc3\x97"
              "10^7 1.0\xc3\x97"
              "10^7 1.5\xc3\x97"
              "10^7 2.0\xc3\x97"
              "10^7 2.5\xc3\x97"
              "10^7 3.0\xc3\x97"
              "10^7 ");
}

TEST(ChartTicks, RangesHoldTheirDataAndEndAtTicks) {
    for (const AxisRange& data : many_ranges()) {
        SCOPED_TRACE(fmt::format("{} to {}", data.low, data.high));
        const AxisRange range = linear_range(data, 8);
        const double span = range.high - range.low;
        ASSERT_LE(range.low, data.low + 1e-6 * span);
        ASSERT_GE(range.high, data.high - 1e-6 * span);
        ASSERT_LE(linear_ticks(range, 8).size(), 8u);
        // Not much larger than what it holds, zero counted in.
        ASSERT_LE(span, 2.5 * (std::max(data.high, 0.0) - std::min(data.low, 0.0)));
    }
    EXPECT_EQ(linear_range({0.02, 0.93}, 8), (AxisRange{0, 1}));
    EXPECT_EQ(linear_range({87, 93}, 8), (AxisRange{87, 93}));
    EXPECT_EQ(linear_range({-0.9, -0.1}, 8), (AxisRange{-1, 0}));
}

TEST(ChartTicks, EqualEndsAreWidened) {
    for (double value : {0.0, 1.0, -5.0, 1e-200, 1e250, -1e-7}) {
        for (const AxisRange& range : {widened({value, value}), linear_range({value, value}, 8)}) {
            EXPECT_LT(range.low, value);
            EXPECT_GE(range.high, value);
            EXPECT_GE(linear_ticks(range, 8).size(), 3u) << value;
        }
        if (value <= 0) continue;
        const AxisRange range = log_range({value, value});
        EXPECT_LT(range.low, value);
        EXPECT_GT(range.high, value);
    }
    EXPECT_EQ(widened({0, 1}), (AxisRange{0, 1}));
}

TEST(ChartTicks, LogarithmicOnesAreRoundFewAndWithinTheRange) {
    const Rng rng(5);
    for (int64_t i = 0; i < 400; ++i) {
        const double low = std::pow(10.0, 60 * static_cast<double>(rng.uniform(2 * i)) - 30);
        const double high = low * std::pow(10.0, (i % 2 ? 3 : 40) * static_cast<double>(rng.uniform(2 * i + 1)) + 0.01);
        const AxisRange range = log_range({low, high});
        SCOPED_TRACE(fmt::format("{} to {}", low, high));
        ASSERT_LE(range.low, low * 1.000001);
        ASSERT_GE(range.high, high * 0.999999);
        ASSERT_TRUE(is_one_two_five(range.low) && is_one_two_five(range.high));
        for (int most : {4, 8}) {
            const std::vector<Tick> ticks = log_ticks(range, most);
            ASSERT_LE(static_cast<int>(ticks.size()), most);
            ASSERT_GE(ticks.size(), 2u);
            for (size_t k = 0; k < ticks.size(); ++k) {
                ASSERT_GE(ticks[k].value, range.low * 0.999999);
                ASSERT_LE(ticks[k].value, range.high * 1.000001);
                ASSERT_NEAR(number_of(ticks[k].text) / ticks[k].value, 1, 1e-9) << ticks[k].text;
                ASSERT_GT(ticks[k].value, k > 0 ? ticks[k - 1].value : 0);
            }
        }
    }
    const std::vector<Tick> ticks = log_ticks({1e-6, 1}, 8);
    ASSERT_EQ(ticks.size(), 7u);
    EXPECT_EQ(ticks[0].text,
              "10^\xe2\x88\x92"
              "6");
    EXPECT_EQ(log_ticks({0.01, 1}, 8)[1].text, "0.02");
}

TEST(ChartTicks, TextsDoNotOverlapAtAnySize) {
    const Rng rng(23);
    int64_t compared = 0;
    for (int64_t i = 0; i < 300; ++i) {
        const auto random = [&](int64_t k) { return static_cast<double>(rng.uniform(8 * i + k)); };
        ChartStyle style;
        style.width = 160 + static_cast<int64_t>(900 * random(0));
        style.height = 120 + static_cast<int64_t>(600 * random(1));
        style.text_size = i % 3 ? 0 : 8 + 24 * random(2);
        Axis x, y;
        x.logarithmic = i % 5 == 0, y.logarithmic = i % 2 == 0;
        x.label = "steps";
        chart::FrameInput input;
        input.x.axis = &x, input.y.axis = &y;
        // Numbers without exponents, whose widths text_width gives.
        for (int64_t k = 0; k < 3; ++k) {
            input.x.add(std::pow(10.0, 5.5 * random(3 + k)));
            input.y.add(std::pow(10.0, 9 * random(5 + k % 2) - 4));
        }
        const chart::Theme theme(style);
        const chart::Frame frame = chart::lay_out(input, style, theme, false);
        const TextStyle text{theme.text, theme.muted, Align::left, false, false};
        SCOPED_TRACE(fmt::format("{}: {} x {}, text {}", i, style.width, style.height, theme.text));
        ASSERT_LE(frame.x.ticks.size(), 8u);
        ASSERT_LE(frame.y.ticks.size(), 8u);
        for (size_t k = 1; k < frame.x.ticks.size(); ++k, ++compared) {
            const Tick &a = frame.x.ticks[k - 1], &b = frame.x.ticks[k];
            ASSERT_GT(frame.x.at(b.value) - text_width(b.text, text) / 2,
                      frame.x.at(a.value) + text_width(a.text, text) / 2 + theme.text);
        }
        for (size_t k = 1; k < frame.y.ticks.size(); ++k, ++compared)
            ASSERT_GT(frame.y.at(frame.y.ticks[k - 1].value), frame.y.at(frame.y.ticks[k].value) + theme.text);
    }
    EXPECT_GT(compared, 1500);
}

}  // namespace
}  // namespace stipple::picture
