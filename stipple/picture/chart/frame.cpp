#include "stipple/picture/chart/frame.h"

#include <algorithm>
#include <cmath>

namespace stipple::picture::chart {
namespace {

constexpr int kMostTicks = 8;
// In text sizes.
constexpr double kMargin = 1.3;    // around everything
constexpr double kTickLine = 0.3;  // length of a tick
constexpr double kTickGap = 0.55;  // from the plot to the numbers
constexpr double kLabelGap = 0.9;  // from the numbers to the label
constexpr double kCapitals = 0.7;  // height of numbers
constexpr double kTitle = 1.25;
constexpr double kTitleGap = 1.3;
constexpr double kRaised = 0.68;  // size of an exponent

TextStyle small_text(const Theme& theme) {
    return {theme.text, theme.muted, Align::left, false, false};
}

TextStyle title_text(const Theme& theme) {
    return {kTitle * theme.text, theme.ink, Align::left, true, false};
}

std::string label_of(const Axis& axis) {
    if (axis.unit.empty()) return axis.label;
    return axis.label.empty() ? axis.unit : axis.label + " (" + axis.unit + ")";
}

// Numbers with a raised exponent behind '^'.
double number_width(const std::string& text, TextStyle style) {
    const size_t cut = text.find('^');
    double width = text_width(text.substr(0, cut), style);
    style.size *= kRaised;
    return cut == std::string::npos ? width : width + text_width(text.substr(cut + 1), style);
}

void draw_number(Image& image, double x, double y, const std::string& text, TextStyle style) {
    const size_t cut = text.find('^');
    const double width = number_width(text, style);
    x -= style.align == Align::center ? width / 2 : style.align == Align::right ? width : 0;
    style.align = Align::left;
    const std::string base = text.substr(0, cut);
    draw_text(image, x, y, base, style);
    if (cut == std::string::npos) return;
    x += text_width(base, style);
    y -= 0.42 * style.size;
    style.size *= kRaised;
    draw_text(image, x, y, text.substr(cut + 1), style);
}

double widest(const std::vector<Tick>& ticks, const TextStyle& style) {
    double width = 0;
    for (const Tick& tick : ticks) width = std::max(width, number_width(tick.text, style));
    return width;
}

// `across`: texts stand side by side (x), else one above the other.
bool texts_fit(const Scale& scale, const TextStyle& style, bool across) {
    for (size_t i = 1; i < scale.ticks.size(); ++i) {
        const double apart = std::abs(scale.at(scale.ticks[i].value) - scale.at(scale.ticks[i - 1].value));
        const double need =
            across ? (number_width(scale.ticks[i].text, style) + number_width(scale.ticks[i - 1].text, style)) / 2 +
                         1.2 * style.size
                   : 1.5 * style.size;
        if (apart < need) return false;
    }
    return true;
}

// Range, ticks and lines between them.
Scale make_scale(const AxisData& data, double start, double length, const TextStyle& style, bool across) {
    Scale scale;
    scale.logarithmic = data.axis->logarithmic;
    scale.start = start;
    scale.length = length;
    AxisRange found = data.found.value_or(scale.logarithmic ? AxisRange{1, 10} : AxisRange{0, 1});
    if (data.from_zero && !scale.logarithmic) found = {std::min(found.low, 0.0), std::max(found.high, 0.0)};
    const int room =
        across ? kMostTicks : std::clamp(static_cast<int>(std::abs(length) / (2.2 * style.size)), 3, kMostTicks);
    if (data.axis->range) {
        scale.range = *data.axis->range;
    } else if (across) {
        constexpr double kEnds = 0.02;
        if (scale.logarithmic) {
            scale.range = found.high > found.low * 1.001 ? found : log_range(found);
        } else {
            found = widened(found);
            const double more = kEnds * (found.high - found.low);
            scale.range = {found.low - more, found.high + more};
        }
    } else {
        scale.range = scale.logarithmic ? log_range(found) : linear_range(found, room);
    }
    for (int most = room; most >= 1; --most) {
        scale.ticks = scale.logarithmic ? log_ticks(scale.range, most)
                                        : linear_ticks(scale.range, most, across && data.whole && data.found ? 1 : 0);
        if (texts_fit(scale, style, across)) break;
    }
    if (!texts_fit(scale, style, across)) scale.ticks.resize(1);
    const double decades = scale.logarithmic ? std::log10(scale.range.high) - std::log10(scale.range.low) : 0;
    if (decades > 0.9 && decades < 6.5)
        for (int e = static_cast<int>(std::floor(std::log10(scale.range.low))); e <= std::log10(scale.range.high); ++e)
            for (int m = 1; m < 10; ++m) {
                const double value = m * std::pow(10.0, e);
                if (value > scale.range.low && value < scale.range.high) scale.minor.push_back(value);
            }
    return scale;
}

}  // namespace

Frame lay_out(const FrameInput& input, const ChartStyle& style, const Theme& theme, bool legend_above) {
    Frame frame;
    const double em = theme.text, margin = kMargin * em;
    const double width = static_cast<double>(style.width), height = static_cast<double>(style.height);
    const TextStyle text = small_text(theme);
    const auto label_room = [&](const Axis& axis) { return label_of(axis).empty() ? 0 : (kLabelGap + kCapitals) * em; };

    double top = margin;
    if (!input.title.empty()) top += (kCapitals * kTitle + kTitleGap) * em;

    // The widths of the numbers depend on the height, and the rows of the legend on the width: the height without
    // legend is near enough to choose the margins at the sides.
    double widest_group = 0;
    for (const std::string& group : input.groups) widest_group = std::max(widest_group, text_width(group, text));
    const auto bottom_room = [&](bool upright) {
        const double names = upright ? std::min(widest_group, height / 4) : kCapitals * em;
        return margin + label_room(*input.x.axis) + names + kTickGap * em;
    };
    const auto set_heights = [&] {
        frame.plot.y = std::round(top);
        frame.plot.height = std::max(std::round(height - bottom_room(frame.upright_groups)) - frame.plot.y, 8.0);
        const double base = frame.plot.y + frame.plot.height;
        frame.y = make_scale(input.y, base, -frame.plot.height, text, false);
        if (input.right) frame.right = make_scale(*input.right, base, -frame.plot.height, text, false);
    };
    const auto set_widths = [&] {
        const auto side = [&](const AxisData& data, const Scale& scale) {
            return margin + label_room(*data.axis) + widest(scale.ticks, text) + kTickGap * em;
        };
        frame.plot.x = std::round(side(input.y, frame.y));
        const double right = input.right ? side(*input.right, frame.right) : 1.6 * margin;
        frame.plot.width = std::max(std::round(width - right) - frame.plot.x, 8.0);
    };
    set_heights();
    set_widths();
    if (!input.groups.empty()) {
        const double slot = frame.plot.width / static_cast<double>(input.groups.size());
        frame.upright_groups = widest_group > slot - 0.6 * em;
        set_heights();
        set_widths();
    }
    if (legend_above) {
        frame.legend = {frame.plot.x, top, frame.plot.width, 0};
        frame.legend.height = 1.5 * em * static_cast<double>(legend_rows(input.legend, frame.plot.width, theme).size());
        frame.legend.height = std::min(frame.legend.height, std::max(1.5 * em, height / 3));
        top += frame.legend.height + 0.5 * em;
        set_heights();
        set_widths();
        frame.legend.x = frame.plot.x;
        frame.legend.width = frame.plot.width;
    }
    frame.x = make_scale(input.x, frame.plot.x, frame.plot.width, text, true);
    return frame;
}

void draw_grid(Image& image, const Frame& frame, const FrameInput& input, const Theme& theme) {
    const Rect& plot = frame.plot;
    const double line = std::max(1.0, std::round(theme.text / 16));
    const Rgb faint = to_rgb(mix(to_vec(theme.background), to_vec(theme.grid), 0.5f));
    const auto across = [&](double value, Rgb color) {
        fill_rect(image, {plot.x, std::round(frame.y.at(value) - line / 2), plot.width, line}, color);
    };
    const auto upward = [&](double value, Rgb color) {
        fill_rect(image, {std::round(frame.x.at(value) - line / 2), plot.y, line, plot.height}, color);
    };
    for (double value : frame.y.minor) across(value, faint);
    if (input.groups.empty()) {
        for (double value : frame.x.minor) upward(value, faint);
        for (const Tick& tick : frame.x.ticks) upward(tick.value, theme.grid);
    }
    for (const Tick& tick : frame.y.ticks) across(tick.value, theme.grid);
}

void draw_axes(Image& image, const Frame& frame, const FrameInput& input, const Theme& theme) {
    const Rect& plot = frame.plot;
    const double em = theme.text, line = std::max(1.0, std::round(em / 14)), tick_line = std::round(kTickLine * em);
    const double base = plot.y + plot.height, right = plot.x + plot.width;
    const double width = static_cast<double>(image.width()), height = static_cast<double>(image.height());
    TextStyle text = small_text(theme);

    // The x axis, and its numbers or the names of the groups.
    fill_rect(image, {plot.x - line, base, plot.width + (input.right ? 2 : 1) * line, line}, theme.axis);
    const double numbers = base + (kTickGap + kCapitals) * em;
    text.align = Align::center;
    if (input.groups.empty()) {
        for (const Tick& tick : frame.x.ticks) {
            const double x = frame.x.at(tick.value);
            fill_rect(image, {std::round(x - line / 2), base, line, tick_line}, theme.axis);
            const double half = number_width(tick.text, text) / 2;
            draw_number(image, std::clamp(x, half + 2, std::max(half + 2, width - half - 2)), numbers, tick.text, text);
        }
    } else {
        const double slot = plot.width / static_cast<double>(input.groups.size());
        const double room = height - kMargin * em - base - kTickGap * em -
                            (label_of(*input.x.axis).empty() ? 0 : (kLabelGap + kCapitals) * em);
        for (size_t i = 0; i < input.groups.size(); ++i) {
            const double x = plot.x + (static_cast<double>(i) + 0.5) * slot;
            TextStyle name = text;
            name.upward = frame.upright_groups;
            if (!name.upward) {
                draw_text(image, x, numbers, input.groups[i], name);
            } else if (slot > em) {
                name.align = Align::right;
                draw_text(image, x + kCapitals / 2 * em, base + kTickGap * em, fit_text(input.groups[i], name, room),
                          name);
            }
        }
    }
    TextStyle label{em, theme.ink, Align::center, false, false};
    draw_text(image, plot.x + plot.width / 2, height - kMargin * em,
              fit_text(label_of(*input.x.axis), label, plot.width), label);

    // The axes at the sides.
    const auto side = [&](const AxisData& data, const Scale& scale, bool at_right) {
        const double at = at_right ? right : plot.x - line, away = at_right ? 1 : -1;
        fill_rect(image, {at, plot.y, line, plot.height}, theme.axis);
        text.color = data.color.value_or(theme.muted);
        text.align = at_right ? Align::left : Align::right;
        for (const Tick& tick : scale.ticks) {
            const double y = scale.at(tick.value);
            if (at_right) fill_rect(image, {right + line, std::round(y - line / 2), tick_line, line}, theme.axis);
            draw_number(image, (at_right ? right : plot.x) + away * kTickGap * em, y + kCapitals / 2 * em, tick.text,
                        text);
        }
        TextStyle upward = label;
        upward.upward = true;
        upward.color = data.color.value_or(theme.ink);
        draw_text(image, at_right ? width - kMargin * em : (kMargin + kCapitals) * em, plot.y + plot.height / 2,
                  fit_text(label_of(*data.axis), upward, base - kTitleGap * em), upward);
    };
    side(input.y, frame.y, false);
    if (input.right) side(*input.right, frame.right, true);

    const TextStyle title = title_text(theme);
    draw_text(image, plot.x, (kMargin + kCapitals * kTitle) * em,
              fit_text(input.title, title, width - plot.x - kMargin * em), title);
}

}  // namespace stipple::picture::chart
