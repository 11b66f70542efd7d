#pragma once
// Charts: curves over two axes, and grouped bars. Plain numbers in, an image out; io/image_file.h writes it as PNG.

#include <optional>
#include <string>
#include <vector>

#include "stipple/core/image.h"
#include "stipple/picture/canvas.h"
#include "stipple/picture/color_map.h"

namespace stipple::picture {

struct AxisRange {
    double low = 0, high = 1;
    bool operator==(const AxisRange&) const = default;
};

struct Axis {
    std::string label = {};
    std::string unit = {};                // written in brackets behind the label
    bool logarithmic = false;             // values that are not positive count as not finite
    std::optional<AxisRange> range = {};  // exactly this; else what the values need, with y to round numbers
};

/// A curve. A point with a coordinate that is not finite (or beyond 1e300) leaves a gap; a point between gaps, as the
/// only one of a series, is a disc. A series without points is listed in the legend and draws nothing.
struct Series {
    std::string name = {};  // "" is not listed in the legend
    std::vector<double> x = {}, y = {};
    bool right = false;    // belongs to the axis on the right
    bool markers = false;  // a disc at each point
    bool dashed = false;
    std::optional<Rgb> color = {};  // else chart_color of its place in the list
};

/// Where the names of the series are listed. automatic: in the plot where that hides nothing, else above it.
enum class LegendPlace { automatic, above, none };

struct ChartStyle {
    int64_t width = 900, height = 500;   // pixels of the image
    bool dark = false;                   // background
    std::optional<Rgb> background = {};  // instead of white or dark
    double text_size = 0;                // pixels; 0 goes with the image size
    double line_width = 0;               // of curves, pixels; 0 goes with the text size
    bool grid = true;
    LegendPlace legend = LegendPlace::automatic;
};

struct LineChart {
    std::string title = {};
    Axis x = {}, y = {}, right = {};  // `right` is shown when some series belongs to it
    std::vector<Series> series = {};
};

/// One bar for each series in every group, from zero (on a logarithmic axis from the lower end). A value that is not
/// finite has no bar.
struct BarSeries {
    std::string name = {};            // "" is not listed in the legend
    std::vector<double> values = {};  // [groups]
    std::optional<Rgb> color = {};
};

struct BarChart {
    std::string title = {};
    std::string group_label = {};  // below the names of the groups
    Axis y = {};
    std::vector<std::string> groups = {};
    std::vector<BarSeries> series = {};
    /// At each bar: three significant digits, from 1000 to 10^6 whole numbers; level, turned or left out as there is
    /// room.
    bool value_labels = true;
};

struct Chart {
    Image image;  // RGB
    /// The area between the axes: a value v of a linear axis is at x + (v - low) / (high - low) * width, or from the
    /// lower edge up; for a logarithmic axis the same with logarithms.
    Rect plot;
    AxisRange x, y, right;  // bars: group i is the middle of [i, i + 1] in x
    Rect legend;            // of no size where there is none
};

/// Colours that people with any of the common colour blindnesses can tell apart; they repeat after six. A chart draws
/// the second six series with dashes, the third with dots, unless they have colours of their own.
Rgb chart_color(int64_t i, bool dark);

/// Ticks are at round numbers (1, 2, 5 times a power of ten), at most eight on an axis, and their texts never overlap.
/// The same chart gives the same bits on every call. Cost: points and pixels, a few milliseconds at 900 x 500.
/// Throws Error{bad_argument} for no series, x and y of different lengths, an image below 160 x 120, above 16384 a side
/// or 2^27 pixels, a range that is empty or not finite or not positive on a logarithmic axis, and a logarithmic axis
/// whose finite values are all zero or negative.
Chart draw_chart(const LineChart& chart, const ChartStyle& style);

/// The same for bars; also for no groups and a series whose values are not as many as the groups.
Chart draw_chart(const BarChart& chart, const ChartStyle& style);

}  // namespace stipple::picture
