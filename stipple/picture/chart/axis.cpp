// Axes: what they must show, where values are, what can be refused.

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/picture/chart/frame.h"

namespace stipple::picture::chart {
namespace {

bool is_dark_color(Rgb c) {
    return 0.3 * c.r + 0.59 * c.g + 0.11 * c.b < 120;
}

Rgb between(Rgb a, Rgb b, float t) {
    return to_rgb(mix(to_vec(a), to_vec(b), t));
}

}  // namespace

Theme::Theme(const ChartStyle& style) {
    background = style.background.value_or(style.dark ? Rgb{22, 24, 29} : Rgb{255, 255, 255});
    dark = is_dark_color(background);
    ink = dark ? Rgb{222, 226, 232} : Rgb{34, 37, 43};
    muted = between(background, ink, dark ? 0.74f : 0.72f);
    axis = between(background, ink, dark ? 0.42f : 0.45f);
    grid = between(background, ink, dark ? 0.13f : 0.1f);
    const double side = std::sqrt(static_cast<double>(style.width) * static_cast<double>(style.height));
    text = style.text_size > 0 ? style.text_size : std::clamp(side / 44, 9.0, 96.0);
    line = style.line_width > 0 ? style.line_width : std::max(1.5, 0.15 * text);
}

void check_style(const ChartStyle& style) {
    STIPPLE_REQUIRE(style.width >= 160 && style.height >= 120 && style.width <= 16384 && style.height <= 16384 &&
                        style.width * style.height <= int64_t{1} << 27,
                    "a chart of {} x {} pixels, at least 160 x 120 and at most 16384 a side and 2^27 in all are taken",
                    style.width, style.height);
    STIPPLE_REQUIRE(style.text_size >= 0 && style.text_size <= 512, "text of {} pixels, 0 to 512 are taken",
                    style.text_size);
    STIPPLE_REQUIRE(style.line_width >= 0 && style.line_width <= 512, "lines of {} pixels, 0 to 512 are taken",
                    style.line_width);
}

bool AxisData::can_show(double value) const {
    return std::abs(value) <= kLargest && (!axis->logarithmic || value >= 1 / kLargest);
}

void AxisData::add(double value) {
    finite = finite || std::isfinite(value);
    if (!can_show(value)) return;
    whole = whole && value == std::floor(value);
    if (!found) found = AxisRange{value, value};
    found->low = std::min(found->low, value);
    found->high = std::max(found->high, value);
}

void AxisData::check() const {
    if (axis->range) {
        const AxisRange& range = *axis->range;
        STIPPLE_REQUIRE(std::abs(range.low) <= kLargest && std::abs(range.high) <= kLargest && range.low < range.high &&
                            widened(range) == range,
                        "the range {} to {} of the {} axis is empty or not finite", range.low, range.high, name);
        STIPPLE_REQUIRE(!axis->logarithmic || range.low >= 1 / kLargest,
                        "the range {} to {} of the logarithmic {} axis must be positive", range.low, range.high, name);
    }
    STIPPLE_REQUIRE(!axis->logarithmic || !finite || found,
                    "the {} axis is logarithmic, but no value on it is positive", name);
}

double Scale::at(double value) const {
    constexpr double kOutside = 1e7;  // pixels
    const double t =
        logarithmic ? (std::log10(value) - std::log10(range.low)) / (std::log10(range.high) - std::log10(range.low))
                    : (value - range.low) / (range.high - range.low);
    return std::clamp(start + t * length, -kOutside, kOutside);
}

}  // namespace stipple::picture::chart
