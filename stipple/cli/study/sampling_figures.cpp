#include "stipple/cli/study/sampling_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stipple/geometry/glyphs.h"
#include "stipple/picture/chart.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

namespace study = tasks::study;
using study::SamplingMethod, study::SamplingRow, study::SamplingSweep, study::SamplingTask;

/// What a chart shows of scores.
struct Measure {
    const char *label, *unit;
    double study::SamplingScores::*member;
    double scale;
    bool is_logarithmic;
};

std::string heading_of(SamplingTask task) {
    std::string text = title_of(task);
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
}

Measure measure_of(SamplingTask task) {
    switch (task) {
        case SamplingTask::classification: return {"accuracy", "%", &study::SamplingScores::accuracy, 100, false};
        case SamplingTask::registration: return {"rotation error", "deg", &study::SamplingScores::rotation, 1, true};
        case SamplingTask::reconstruction: break;
    }
    return {"NRE", "", &study::SamplingScores::nre, 1, true};
}
constexpr Measure kConsistency = {"consistency", "1e-3", &study::SamplingScores::consistency, 1e3, true};

/// Pictures of one height in a row.
Image beside_each_other(const std::vector<Image>& images) {
    int64_t width = 0;
    for (const Image& image : images) width += image.width();
    Image all(width, images.at(0).height(), images[0].channels());
    int64_t left = 0;
    for (const Image& image : images) {
        for (int64_t y = 0; y < all.height(); ++y)
            std::copy_n(image.at(0, y), image.width() * image.channels(), all.at(left, y));
        left += image.width();
    }
    return all;
}

/// Points of a curve; of methods colours and order are the same in all charts.
void add_curve(picture::LineChart& chart, const std::vector<const SamplingRow*>& rows, SamplingMethod method,
               const Measure& measure, bool is_soft) {
    picture::Series series;
    series.markers = true;
    series.dashed = is_soft;
    series.color = picture::chart_color(static_cast<int64_t>(method) - 1, false);
    for (const SamplingRow* row : rows) {
        const double value = measure.scale * ((is_soft ? row->soft : row->hard).*measure.member);
        if (!std::isfinite(value) || (measure.is_logarithmic && value <= 0)) continue;
        series.x.push_back(static_cast<double>(row->points));
        series.y.push_back(value);
    }
    if (series.x.empty()) return;
    series.name = fmt::format("{}{}", title_of(method), is_soft ? ", soft" : "");
    // There are more methods than colours: the last ones have darker ones of their own.
    if (method == SamplingMethod::samplenet) series.color = picture::Rgb{150, 30, 90};
    if (method == SamplingMethod::progressive) series.color = picture::Rgb{20, 20, 20};
    chart.series.push_back(std::move(series));
}

picture::LineChart size_chart(const std::vector<SamplingRow>& rows, SamplingTask task, const std::string& network,
                              const Measure& measure, const std::string& title) {
    picture::LineChart chart;
    chart.title = title;
    chart.x.label = "points";
    chart.x.logarithmic = true;
    chart.y = {.label = measure.label, .unit = measure.unit, .logarithmic = measure.is_logarithmic};
    if (task == SamplingTask::classification) chart.y.range = picture::AxisRange{0, 100};
    for (const SamplingMethod method : study::sampling_methods())
        for (const bool is_soft : {false, true})
            add_curve(chart, rows_of(rows, SamplingSweep::size, task, network, method), method, measure, is_soft);
    const auto whole = rows_of(rows, SamplingSweep::size, task, network, SamplingMethod::all);
    double low = INFINITY, high = 0;
    for (const picture::Series& series : chart.series)
        for (const double x : series.x) low = std::min(low, x), high = std::max(high, x);
    const double value = whole.empty() ? NAN : measure.scale * (whole[0]->hard.*measure.member);
    // Of all points two looks are the same: nothing to compare with.
    if (low < high && std::isfinite(value) && measure.member != kConsistency.member)
        chart.series.push_back({.name = fmt::format("all {} points", whole[0]->points),
                                .x = {low, high},
                                .y = {value, value},
                                .dashed = true,
                                .color = picture::Rgb{150, 150, 150}});
    return chart;
}

Image draw_charts(std::vector<picture::LineChart> charts) {
    std::vector<Image> images;
    for (picture::LineChart& chart : charts) {
        if (chart.series.empty()) continue;
        images.push_back(
            picture::draw_chart(chart, {.width = 820, .height = 640, .legend = picture::LegendPlace::above}).image);
    }
    if (images.empty()) {  // rows without a number: an empty chart says so
        picture::LineChart chart{.title = "no rows"};
        chart.series.push_back({});
        images.push_back(picture::draw_chart(chart, {}).image);
    }
    return beside_each_other(images);
}

Mesh balls_at(const PointCloud& points, float radius) {
    Array<float, 1> radii({points.size()});
    std::fill_n(radii.data(), points.size(), radius);
    return geometry::sphere_glyphs(points.positions.view(), radii.view(), 2);
}

}  // namespace

Image draw_sampling_task(const std::vector<SamplingRow>& rows, SamplingTask task) {
    std::vector<picture::LineChart> charts;
    for (const std::string& network : networks_with_rows(rows, task)) {
        const bool has_several = task == SamplingTask::classification;
        charts.push_back(
            size_chart(rows, task, network, measure_of(task),
                       fmt::format("{}, {}{}", heading_of(task), network, has_several ? " task network" : "")));
        if (task == SamplingTask::registration)
            charts.push_back(size_chart(rows, task, network, kConsistency, "Consistency of two sampled looks"));
    }
    return draw_charts(std::move(charts));
}

Image draw_sampling_sweep(const std::vector<SamplingRow>& rows, SamplingSweep sweep) {
    const bool is_k = sweep == SamplingSweep::neighbours;
    std::vector<picture::LineChart> charts;
    for (const SamplingTask task : study::sampling_tasks()) {
        const Measure measure = measure_of(task);
        picture::LineChart chart;
        chart.x.label = is_k ? "neighbours" : "temperature, of the trained one";
        chart.y = {.label = measure.label, .unit = measure.unit};
        for (const std::string& network : networks_with_rows(rows, task)) {
            picture::Series series{.name = network, .markers = true};
            for (const SamplingRow* row : rows_of(rows, sweep, task, network, SamplingMethod::samplenet)) {
                series.x.push_back(is_k ? static_cast<double>(row->change.neighbours) : row->change.scale);
                series.y.push_back(measure.scale * (row->soft.*measure.member));
                chart.title = fmt::format("{}, SampleNet of {} points, soft", heading_of(task), row->points);
            }
            if (!series.x.empty()) chart.series.push_back(std::move(series));
        }
        charts.push_back(std::move(chart));
    }
    return draw_charts(std::move(charts));
}

Image draw_samples(const std::vector<study::SamplePicture>& samples) {
    constexpr float kRadius = 0.042f;  // of shapes in the unit sphere
    std::vector<Mesh> balls;
    balls.reserve(samples.size());
    std::vector<picture::Panel> panels;
    for (const study::SamplePicture& sample : samples) {
        balls.push_back(balls_at(sample.chosen, kRadius));
        picture::Panel& panel = panels.emplace_back();
        panel.cloud = &sample.cloud;
        panel.color_by = "#d5d9df";
        panel.point_radius = 1.4;  // so small that those on the far side are seen too
        panel.mesh = &balls.back();
        panel.mesh_color = {206, 70, 44};
        panel.caption = fmt::format("{}, {}", sample.shape, sample.method);
    }
    // Methods begin again with every shape.
    const auto again = std::find_if(samples.begin() + 1, samples.end(), [&](const study::SamplePicture& sample) {
        return sample.method == samples[0].method;
    });
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 360;
    style.columns = again - samples.begin();
    style.legend = false;
    return picture::draw_figure(panels, style).image;
}

}  // namespace stipple::cli
