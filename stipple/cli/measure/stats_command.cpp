#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/terminal.h"
#include "stipple/picture/chart.h"
#include "stipple/tasks/measure.h"

namespace stipple::cli {
namespace {

struct StatsCommand {
    InputFile input;
    tasks::StatsOptions how;
    std::string picture;
};

/// Histograms as steps, two beside each other.
Image draw_histograms(const std::vector<tasks::ValueSummary>& columns) {
    constexpr int64_t kWidth = 480, kHeight = 300;
    const auto count = static_cast<int64_t>(columns.size()), across = std::min<int64_t>(count, 2);
    Image image(across * kWidth, (count + 1) / 2 * kHeight, 3);
    std::fill_n(image.pixels.data(), image.pixels.elements(), uint8_t{255});
    for (int64_t k = 0; k < count; ++k) {
        const geometry::Histogram& histogram = columns[static_cast<size_t>(k)].histogram;
        const auto bins = static_cast<int>(histogram.counts.size());
        picture::Series steps;
        const double width = (histogram.high - histogram.low) / bins;
        for (int bin = 0; bin < bins; ++bin)
            for (const int edge : {bin, bin + 1}) {
                steps.x.push_back(histogram.low + width * edge);
                steps.y.push_back(static_cast<double>(histogram.counts[static_cast<size_t>(bin)]));
            }
        picture::LineChart chart;
        chart.x.label = columns[static_cast<size_t>(k)].name;
        chart.y.label = "points";
        chart.series.push_back(std::move(steps));
        picture::ChartStyle style;
        style.width = kWidth, style.height = kHeight;
        const Image drawn = picture::draw_chart(chart, style).image;
        for (int64_t y = 0; y < kHeight; ++y)
            std::copy_n(drawn.at(0, y), 3 * kWidth, image.at(k % 2 * kWidth, k / 2 * kHeight + y));
    }
    return image;
}

/// A row for each value; for people with digits for coordinates of maps.
Table table_of(const tasks::CloudStats& stats, bool is_text) {
    Table table{
        {"value", "min", "1 %", "5 %", "25 %", "median", "75 %", "95 %", "99 %", "max", "mean", "std", "non-finite"},
        {}};
    for (const tasks::ValueSummary& value : stats.values) {
        const tasks::Percentiles& p = value.percentiles;
        table.rows.push_back({value.name});
        for (const std::optional<double>& x :
             {value.min, p.p1, p.p5, p.p25, p.p50, p.p75, p.p95, p.p99, value.max, value.mean, value.deviation}) {
            Json cell = x ? Json(*x) : Json();
            if (is_text) cell = x ? fmt::format("{:.{}g}", *x, std::abs(*x) < 1e5 ? 6 : 9) : "-";
            table.rows.back().push_back(std::move(cell));
        }
        table.rows.back().push_back(value.non_finite);
    }
    return table;
}

Result run_stats(const StatsCommand& command, const Common& common) {
    require_picture(command.picture, common);
    Result result;
    const Mesh mesh = load_input(command.input, common, result);
    const tasks::CloudStats stats =
        about_file(command.input.path, [&] { return tasks::describe_values(mesh.vertices, command.how); });
    result.fields.update(to_json(tasks::cloud_stats_fields(), &stats));
    result.text =
        fmt::format("{}: {} points, {:.4g} to the nearest other (median), {:.4g} a square unit, {:.4g} a cubic unit\n",
                    printable(command.input.path), grouped(stats.points), stats.density.spacing, stats.density.per_area,
                    stats.density.per_volume) +
        format_table(table_of(stats, true), "");
    save_picture(
        command.picture, [&] { return draw_histograms(stats.values); }, common, result);
    if (!common.table.empty()) result.text = format_table(table_of(stats, false), common.table);
    return result;
}

}  // namespace

Command add_stats(Arguments& root, Common& common) {
    auto command = std::make_shared<StatsCommand>();
    Arguments& app = root.command("stats", "Percentiles and histograms of coordinates and attributes, and density");
    Option input = app.option("INPUT", command->input.path, "The file; - is standard input");
    app.add(tasks::stats_fields(), &command->how, "of").separated_by(',').one_word();
    app.add(tasks::stats_fields(), &command->how, "bins");
    app.option("--picture", command->picture, "Draw the histograms into this .png");
    add_input_format(app, command->input);
    app.footer(
        "Example:\n  stipple stats scan.las --of z,intensity --picture stats.png\n"
        "  stipple stats scan.ply --table csv");
    return {&app, [command, &common] { return run_stats(*command, common); }, {input}};
}

}  // namespace stipple::cli
