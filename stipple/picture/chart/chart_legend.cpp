// The list of series: rows above the plot, or a column in it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stipple/picture/chart/frame.h"

namespace stipple::picture::chart {
namespace {

// In text sizes.
constexpr double kSample = 2.0;      // length of the line before a name
constexpr double kSampleGap = 0.55;  // behind it
constexpr double kBetween = 1.6;     // from a name to the next sample
constexpr double kRow = 1.5;
constexpr double kPadding = 0.7;  // within the box in the plot
constexpr double kAway = 0.8;     // of the box from the axes
constexpr double kLongest = 20;   // name

TextStyle entry_text(const Theme& theme) {
    return {theme.text, theme.ink, Align::left, false, false};
}

double sample_width(const LegendEntry& entry, const Theme& theme) {
    return (entry.line ? kSample : 0.85) * theme.text;
}

double entry_width(const LegendEntry& entry, const Theme& theme, double most) {
    const double before = sample_width(entry, theme) + kSampleGap * theme.text;
    return std::min(before + text_width(entry.name, entry_text(theme)), most);
}

void draw_entry(Image& image, double x, double base, const LegendEntry& entry, double width, const Theme& theme) {
    const double sample = sample_width(entry, theme), middle = base - 0.35 * theme.text;
    if (entry.line) {
        const std::array<double, 2> ends[] = {{x, middle}, {x + sample, middle}};
        const Rect all{0, 0, static_cast<double>(image.width()), static_cast<double>(image.height())};
        draw_polyline(image, ends, theme.line, entry.color, all, entry.dash, entry.gap);
        if (entry.marker)
            draw_line(image, x + sample / 2, middle, x + sample / 2, middle, 2.6 * theme.line, entry.color);
    } else {
        fill_rect(image, {std::round(x), std::round(middle - sample / 2), std::round(sample), std::round(sample)},
                  entry.color);
    }
    const double before = sample + kSampleGap * theme.text;
    draw_text(image, x + before, base, fit_text(entry.name, entry_text(theme), width - before + 0.5),
              entry_text(theme));
}

}  // namespace

std::vector<LegendRow> legend_rows(const std::vector<LegendEntry>& entries, double width, const Theme& theme) {
    std::vector<LegendRow> rows;
    double x = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
        const double need = entry_width(entries[i], theme, width);
        if (rows.empty() || x + need > width) rows.push_back({i}), x = 0;
        rows.back().starts.push_back(x);
        x += need + kBetween * theme.text;
    }
    return rows;
}

void draw_legend_rows(Image& image, const Rect& where, const std::vector<LegendEntry>& entries, const Theme& theme) {
    const double row_height = kRow * theme.text;
    const std::vector<LegendRow> rows = legend_rows(entries, where.width, theme);
    const auto fit = static_cast<size_t>(std::max(1.0, std::floor(where.height / row_height + 0.01)));
    const size_t shown = rows.size() <= fit ? rows.size() : fit - 1;
    double base = where.y + 0.7 * theme.text;
    for (size_t r = 0; r < shown; ++r, base += row_height)
        for (size_t i = 0; i < rows[r].starts.size(); ++i) {
            const LegendEntry& entry = entries[rows[r].first + i];
            draw_entry(image, where.x + rows[r].starts[i], base, entry, entry_width(entry, theme, where.width), theme);
        }
    if (shown == rows.size()) return;
    const std::string rest = fmt::format("{} {}", entries.size() - rows[shown].first, shown > 0 ? "more" : "series");
    draw_text(image, where.x, base, rest, entry_text(theme));
}

std::optional<Rect> legend_place(const Image& drawn, const Image& empty, const Rect& plot,
                                 const std::vector<LegendEntry>& entries, const Theme& theme) {
    const double em = theme.text, rows = static_cast<double>(entries.size());
    double width = 0;
    for (const LegendEntry& entry : entries)
        width = std::max(width, entry_width(entry, theme, (kSample + kSampleGap + kLongest) * em));
    width = std::ceil(width + 2 * kPadding * em);
    const double height = std::ceil((rows - 1) * kRow * em + (0.7 + 2 * kPadding) * em);
    const double left = plot.x + kAway * em, right = plot.x + plot.width - kAway * em - width;
    const double top = plot.y + kAway * em, bottom = plot.y + plot.height - kAway * em - height;
    // A legend that fills the plot is no place, even when nothing is drawn there.
    if (width > 0.6 * plot.width || height > 0.7 * plot.height) return {};
    const double middle_x = (left + right) / 2, middle_y = (top + bottom) / 2;
    const std::array<double, 2> corners[] = {{right, top},    {left, top},        {right, bottom},   {left, bottom},
                                             {middle_x, top}, {middle_x, bottom}, {right, middle_y}, {left, middle_y}};
    for (const auto& [x, y] : corners) {
        const Rect box{std::round(x), std::round(y), width, height};
        bool free = true;
        for (auto py = static_cast<int64_t>(box.y); free && py < static_cast<int64_t>(box.y + box.height); ++py) {
            const auto px = static_cast<int64_t>(box.x);
            const uint8_t *a = drawn.at(px, py), *b = empty.at(px, py);
            free = std::equal(a, a + 3 * static_cast<int64_t>(width), b);
        }
        if (free) return box;
    }
    return {};
}

void draw_legend_column(Image& image, const Rect& where, const std::vector<LegendEntry>& entries, const Theme& theme) {
    const double em = theme.text;
    fill_rect(image, where, theme.background);
    draw_frame(image, where, std::max(1.0, std::round(em / 16)), theme.grid);
    double base = where.y + (kPadding + 0.7) * em;
    for (const LegendEntry& entry : entries) {
        draw_entry(image, where.x + kPadding * em, base, entry, where.width - 2 * kPadding * em, theme);
        base += kRow * em;
    }
}

}  // namespace stipple::picture::chart
