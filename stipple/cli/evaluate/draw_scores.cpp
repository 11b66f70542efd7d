#include "stipple/cli/evaluate/draw_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/picture/chart.h"

namespace stipple::cli {

double percent(double share) {
    return std::round(1e4 * share) / 1e2;
}

Image draw_over_points(const std::string& title, const std::string& what, const std::vector<double>& points,
                       const std::vector<std::pair<std::string, std::vector<double>>>& curves) {
    std::vector<size_t> order(points.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return points[a] < points[b]; });
    picture::LineChart chart{
        .title = title, .x = {.label = "points of a cloud", .logarithmic = true}, .y = {.label = what, .unit = "%"}};
    for (const auto& [name, values] : curves) {
        picture::Series& series = chart.series.emplace_back();
        series.name = name;
        series.markers = true;
        for (const size_t i : order) {
            series.x.push_back(points[i]);
            series.y.push_back(100 * values[i]);
        }
    }
    return picture::draw_chart(chart, {}).image;
}

Image draw_by_name(const std::string& title, const std::string& what, const std::vector<std::string>& names,
                   const std::vector<double>& values) {
    picture::BarChart chart{.title = title,
                            .y = {.label = what, .unit = "%", .range = picture::AxisRange{0, 115}},  // room for 100
                            .groups = names,
                            .series = {{}}};
    for (const double value : values) chart.series[0].values.push_back(100 * value);
    picture::ChartStyle style;
    style.width = std::clamp<int64_t>(36 * static_cast<int64_t>(names.size()), style.width, 16384);
    return picture::draw_chart(chart, style).image;
}

}  // namespace stipple::cli
