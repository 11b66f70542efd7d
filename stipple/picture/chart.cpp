#include "stipple/picture/chart.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/picture/chart/frame.h"

namespace stipple::picture {
namespace {

using ChartPoint = std::array<double, 2>;

// After Okabe and Ito, without yellow and black; lighter ones for dark backgrounds.
constexpr Rgb kChartColors[2][6] = {
    {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {230, 159, 0}, {86, 180, 233}},
    {{86, 180, 233}, {255, 128, 56}, {44, 196, 146}, {226, 148, 192}, {240, 228, 66}, {140, 140, 255}}};
constexpr int64_t kChartColorCount = 6;

struct Dashes {
    double dash = 0, gap = 0;
};

Dashes dashes_of(const Series& series, int64_t i, double line_width) {
    // Dashes tell curves of one colour apart; one that has a colour of its own needs none.
    const int64_t lap = series.color ? 0 : i / kChartColorCount % 3;
    if (lap == 2) return {line_width, 1.6 * line_width};
    if (series.dashed || lap == 1) return {3.6 * line_width, 2 * line_width};
    return {};
}

Rgb color_of(const Series& series, int64_t i, const chart::Theme& theme) {
    return series.color.value_or(chart_color(i, theme.dark));
}

void check_lines(const LineChart& lines) {
    STIPPLE_REQUIRE(!lines.series.empty(), "a chart without series");
    for (size_t i = 0; i < lines.series.size(); ++i) {
        const Series& series = lines.series[i];
        STIPPLE_REQUIRE(series.x.size() == series.y.size(), "series {} '{}' has {} x and {} y", i, series.name,
                        series.x.size(), series.y.size());
    }
}

// One series: its pieces between gaps, and its markers.
void draw_series(Image& image, const chart::Frame& frame, const chart::FrameInput& input, const Series& series,
                 Rgb color, Dashes dashes, double line_width) {
    const chart::AxisData& y_data = series.right ? *input.right : input.y;
    const chart::Scale& y_scale = series.right ? frame.right : frame.y;
    // Half a line more than the plot, so that a curve along its edge is as wide as elsewhere.
    const Rect& plot = frame.plot;
    const Rect clip{plot.x - line_width / 2, plot.y - line_width / 2, plot.width + line_width,
                    plot.height + line_width};
    std::vector<ChartPoint> piece;
    const auto marker = [&](const ChartPoint& at, double size) {
        const bool inside = at[0] >= plot.x - 1 && at[0] <= plot.x + plot.width + 1 && at[1] >= plot.y - 1 &&
                            at[1] <= plot.y + plot.height + 1;
        if (inside) draw_line(image, at[0], at[1], at[0], at[1], size * line_width, color);
    };
    const auto finish = [&] {
        if (piece.size() == 1) marker(piece[0], 3.4);
        if (piece.size() > 1) draw_polyline(image, piece, line_width, color, clip, dashes.dash, dashes.gap);
        piece.clear();
    };
    for (size_t i = 0; i < series.x.size(); ++i) {
        if (!input.x.can_show(series.x[i]) || !y_data.can_show(series.y[i])) {
            finish();
            continue;
        }
        piece.push_back({frame.x.at(series.x[i]), y_scale.at(series.y[i])});
        if (series.markers) marker(piece.back(), 2.6);
    }
    finish();
}

}  // namespace

Rgb chart_color(int64_t i, bool dark) {
    return kChartColors[dark ? 1 : 0][std::max<int64_t>(i, 0) % kChartColorCount];
}

Chart draw_chart(const LineChart& lines, const ChartStyle& style) {
    chart::check_style(style);
    check_lines(lines);
    const chart::Theme theme(style);
    chart::FrameInput input;
    input.title = lines.title;
    input.x.axis = &lines.x, input.x.name = "x";
    input.y.axis = &lines.y, input.y.name = "y";
    const auto is_right = [](const Series& series) { return series.right; };
    const auto on_right = std::count_if(lines.series.begin(), lines.series.end(), is_right);
    if (on_right > 0) {
        input.right.emplace();
        input.right->axis = &lines.right;
        input.right->name = "right";
    }
    const auto on_left = static_cast<int64_t>(lines.series.size()) - on_right;
    for (size_t s = 0; s < lines.series.size(); ++s) {
        const Series& series = lines.series[s];
        const auto place = static_cast<int64_t>(s);
        chart::AxisData& y_data = series.right ? *input.right : input.y;
        for (size_t i = 0; i < series.x.size(); ++i) {
            // A point that is a gap because of one coordinate must not stretch the axis of the other.
            if (!y_data.can_show(series.y[i]) || !input.x.can_show(series.x[i])) {
                input.x.finite = input.x.finite || std::isfinite(series.x[i]);
                y_data.finite = y_data.finite || std::isfinite(series.y[i]);
                continue;
            }
            input.x.add(series.x[i]);
            y_data.add(series.y[i]);
        }
        // With one curve for each axis, its colour says which axis is its own.
        if (on_right > 0 && (series.right ? on_right : on_left) == 1) y_data.color = color_of(series, place, theme);
        const Dashes dashes = dashes_of(series, place, theme.line);
        if (!series.name.empty() && style.legend != LegendPlace::none)
            input.legend.push_back({on_right > 0 && series.right ? series.name + " \xe2\x86\x92" : series.name,
                                    color_of(series, place, theme), dashes.dash, dashes.gap, true, series.markers});
    }
    input.y.check();
    if (input.right) input.right->check();
    input.x.check();
    return chart::draw_framed(input, style, [&](Image& image, const chart::Frame& frame) {
        for (size_t s = 0; s < lines.series.size(); ++s) {
            const auto place = static_cast<int64_t>(s);
            draw_series(image, frame, input, lines.series[s], color_of(lines.series[s], place, theme),
                        dashes_of(lines.series[s], place, theme.line), theme.line);
        }
    });
}

}  // namespace stipple::picture
