// draw_chart for bars.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/picture/chart/frame.h"

namespace stipple::picture {
namespace {

constexpr double kGroupWidth = 0.76;  // of the room of a group
constexpr double kBarWidth = 0.92;    // of the room of a bar

void check_bars(const BarChart& bars) {
    STIPPLE_REQUIRE(!bars.series.empty(), "a chart without series");
    STIPPLE_REQUIRE(!bars.groups.empty(), "a bar chart without groups");
    for (size_t i = 0; i < bars.series.size(); ++i)
        STIPPLE_REQUIRE(bars.series[i].values.size() == bars.groups.size(),
                        "series {} '{}' has {} values for {} groups", i, bars.series[i].name,
                        bars.series[i].values.size(), bars.groups.size());
}

// Three significant digits, no exponent for the usual magnitudes.
std::string value_text(double value) {
    const double size = std::abs(value);
    std::string text = size >= 1000 && size < 1e6 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
    if (text[0] == '-') text.replace(0, 1, "\xe2\x88\x92");
    return text;
}

Rgb bar_color(const BarSeries& series, size_t i, const chart::Theme& theme) {
    return series.color.value_or(chart_color(static_cast<int64_t>(i), theme.dark));
}

enum class ValueTexts { none, upright, turned };

// How the values can be written on bars of `room` pixels.
ValueTexts choose_value_texts(const BarChart& bars, double widest, double room, double text_size) {
    if (!bars.value_labels) return ValueTexts::none;
    if (widest <= room) return ValueTexts::upright;
    return 0.9 * text_size <= room ? ValueTexts::turned : ValueTexts::none;
}

void draw_value(Image& image, double x, double end, bool down, const std::string& text, ValueTexts how,
                const TextStyle& style) {
    constexpr double kCapitals = 0.7;  // of the text size
    const double gap = 0.35 * style.size;
    TextStyle at = style;
    if (how == ValueTexts::turned) {
        at.upward = true;
        at.align = down ? Align::right : Align::left;
        draw_text(image, x + kCapitals / 2 * style.size, down ? end + gap : end - gap, text, at);
    } else {
        at.align = Align::center;
        draw_text(image, x, down ? end + gap + kCapitals * style.size : end - gap, text, at);
    }
}

}  // namespace

Chart draw_chart(const BarChart& bars, const ChartStyle& style) {
    chart::check_style(style);
    check_bars(bars);
    const chart::Theme theme(style);
    const TextStyle text{0.88 * theme.text, theme.ink, Align::center, false, false};
    const double groups = static_cast<double>(bars.groups.size());
    Axis group_axis;
    group_axis.label = bars.group_label;
    group_axis.range = AxisRange{0, groups};

    chart::FrameInput input;
    input.title = bars.title;
    input.groups = bars.groups;
    input.x.axis = &group_axis, input.x.name = "x";
    input.y.axis = &bars.y, input.y.name = "y", input.y.from_zero = true;
    double widest = 0;
    for (size_t s = 0; s < bars.series.size(); ++s) {
        for (double value : bars.series[s].values) {
            input.y.add(value);
            if (input.y.can_show(value)) widest = std::max(widest, text_width(value_text(value), text));
        }
        if (!bars.series[s].name.empty() && style.legend != LegendPlace::none)
            input.legend.push_back({bars.series[s].name, bar_color(bars.series[s], s, theme), 0, 0, false, false});
    }
    input.y.check();

    // Values need room beyond the bars. Sides and heights of the plot are not known yet: as they usually are.
    const double bar_room =
        0.82 * static_cast<double>(style.width) / groups * kGroupWidth / static_cast<double>(bars.series.size());
    const ValueTexts how = choose_value_texts(bars, widest, bar_room * 1.02, text.size);
    if (how != ValueTexts::none && input.y.found) {
        const double pixels = (how == ValueTexts::turned ? widest : 0.7 * text.size) + 0.6 * text.size;
        const double part = std::min(pixels / (0.7 * static_cast<double>(style.height)), 0.5);
        AxisRange& found = *input.y.found;
        if (bars.y.logarithmic) {
            found.high *= std::pow(std::max(found.high / found.low, 10.0), part);
        } else {
            const double span = std::max(found.high, 0.0) - std::min(found.low, 0.0);
            if (found.high > 0) found.high += part * span;
            if (found.low < 0) found.low -= part * span;
        }
    }

    return chart::draw_framed(input, style, [&](Image& image, const chart::Frame& frame) {
        const Rect& plot = frame.plot;
        const double slot = plot.width / groups, base = plot.y + plot.height;
        const double zero = bars.y.logarithmic ? base : std::clamp(frame.y.at(0), plot.y, base);
        const double room = kGroupWidth * slot / static_cast<double>(bars.series.size());
        for (size_t g = 0; g < bars.groups.size(); ++g)
            for (size_t s = 0; s < bars.series.size(); ++s) {
                const double value = bars.series[s].values[g];
                if (!input.y.can_show(value)) continue;
                const double left = plot.x + (static_cast<double>(g) + (1 - kGroupWidth) / 2) * slot +
                                    static_cast<double>(s) * room + (1 - kBarWidth) / 2 * room;
                const double end = std::clamp(frame.y.at(value), plot.y, base);
                fill_rect(image, {left, std::min(zero, end), kBarWidth * room, std::abs(end - zero)},
                          bar_color(bars.series[s], s, theme));
                if (how != ValueTexts::none)
                    draw_value(image, left + kBarWidth * room / 2, end, end > zero, value_text(value), how, text);
            }
        if (zero < base) fill_rect(image, {plot.x, std::round(zero), plot.width, 1}, theme.axis);
    });
}

}  // namespace stipple::picture
