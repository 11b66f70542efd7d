#pragma once
// What curves and bars share: colours, axes, where everything is, the legend.

#include <optional>
#include <string>
#include <vector>

#include "stipple/picture/chart.h"
#include "stipple/picture/chart/ticks.h"
#include "stipple/picture/text.h"

namespace stipple::picture::chart {

struct Theme {
    explicit Theme(const ChartStyle& style);
    bool dark;
    Rgb background, ink, muted, axis, grid;
    double text, line;  // sizes in pixels
};

/// Throws Error{bad_argument} for sizes out of range.
void check_style(const ChartStyle& style);

/// What an axis has to show.
struct AxisData {
    const Axis* axis = nullptr;
    std::string name;                // of the axis, in errors
    std::optional<AxisRange> found;  // of the values that it can show
    bool finite = false;             // some value is finite
    bool whole = true;               // all values are whole numbers
    bool from_zero = false;          // the range must hold zero
    std::optional<Rgb> color;        // of label and numbers

    bool can_show(double value) const;
    void add(double value);
    /// Throws Error{bad_argument} for a range or values that the axis cannot show.
    void check() const;
};

/// From values to pixels.
struct Scale {
    AxisRange range;
    bool logarithmic = false;
    double start = 0, length = 0;  // pixels of the lower end, signed to the upper end
    std::vector<Tick> ticks = {};
    std::vector<double> minor = {};  // lines without texts, of logarithmic axes

    /// At most 1e7 pixels outside.
    double at(double value) const;
};

struct LegendEntry {
    std::string name;
    Rgb color;
    double dash = 0, gap = 0;
    bool line = true;     // else a square
    bool marker = false;  // on the line
};

/// A chart without its contents.
struct FrameInput {
    std::string title;
    AxisData x, y;
    std::optional<AxisData> right;
    std::vector<std::string> groups;  // instead of numbers on the x axis
    std::vector<LegendEntry> legend;
};

struct Frame {
    Rect plot;
    Scale x, y, right;
    bool upright_groups = false;
    Rect legend;  // above the plot; no size when it is not there
};

/// Finds the place of everything; `legend_above` makes room between title and plot.
Frame lay_out(const FrameInput& input, const ChartStyle& style, const Theme& theme, bool legend_above);

/// The grid, then axes with their numbers and all texts: both below the contents, so that no axis hides a curve.
void draw_grid(Image& image, const Frame& frame, const FrameInput& input, const Theme& theme);
void draw_axes(Image& image, const Frame& frame, const FrameInput& input, const Theme& theme);

/// The entries in rows of at most `width`: of each row the first entry and where the entries begin.
struct LegendRow {
    size_t first = 0;
    std::vector<double> starts = {};
};
std::vector<LegendRow> legend_rows(const std::vector<LegendEntry>& entries, double width, const Theme& theme);

/// Rows of entries within `where`, which lay_out found.
void draw_legend_rows(Image& image, const Rect& where, const std::vector<LegendEntry>& entries, const Theme& theme);

/// The place of a column of entries in the plot at which all pixels of `drawn` are those of `empty`; none where there
/// is no such place.
std::optional<Rect> legend_place(const Image& drawn, const Image& empty, const Rect& plot,
                                 const std::vector<LegendEntry>& entries, const Theme& theme);
void draw_legend_column(Image& image, const Rect& where, const std::vector<LegendEntry>& entries, const Theme& theme);

/// Lays out, draws grid, axes, contents and legend. `contents(image, frame)` is called once or twice.
template <class Contents>
Chart draw_framed(const FrameInput& input, const ChartStyle& style, Contents&& contents) {
    const Theme theme(style);
    Chart chart;
    const auto draw = [&](bool legend_above) {
        const Frame frame = lay_out(input, style, theme, legend_above);
        chart.image = Image(style.width, style.height, 3);
        fill(chart.image, theme.background);
        if (style.grid) draw_grid(chart.image, frame, input, theme);
        draw_axes(chart.image, frame, input, theme);
        Image empty;
        if (!legend_above && !input.legend.empty()) {
            empty = Image(style.width, style.height, 3);
            empty.pixels = chart.image.pixels.clone();
        }
        contents(chart.image, frame);
        chart.plot = frame.plot;
        chart.x = frame.x.range, chart.y = frame.y.range, chart.right = frame.right.range;
        chart.legend = frame.legend;
        bool placed = input.legend.empty() || legend_above;
        if (!placed)
            if (const auto place = legend_place(chart.image, empty, frame.plot, input.legend, theme)) {
                chart.legend = *place;
                draw_legend_column(chart.image, *place, input.legend, theme);
                placed = true;
            }
        if (legend_above) draw_legend_rows(chart.image, frame.legend, input.legend, theme);
        return placed;
    };
    const bool above = !input.legend.empty() && style.legend == LegendPlace::above;
    if (!draw(above)) draw(true);
    return chart;
}

}  // namespace stipple::picture::chart
