#include <fmt/ranges.h>

#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/terminal.h"
#include "stipple/geometry/statistics.h"
#include "stipple/picture/chart.h"

namespace stipple::cli {
namespace {

struct StatsOptions {
    InputFile input;
    std::vector<std::string> of;
    std::string picture;
    int bins = 60;
};

/// Calls body(name, values) for each number that points have: coordinates of the world, components of attributes.
void for_each_value(const PointCloud& cloud, const std::vector<std::string>& wanted,
                    const std::function<void(const std::string& name, const std::vector<double>& values)>& body) {
    std::vector<std::string> names = {"x", "y", "z"};
    for (const Attribute& attribute : cloud.attributes) names.push_back(attribute.name());
    for (const std::string& name : wanted)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw Error(ErrorCode::bad_argument, fmt::format("no attribute \"{}\"", name),
                        fmt::format("there are {}", fmt::join(names, ", ")));
    std::vector<double> values(static_cast<size_t>(cloud.size()));
    for (const std::string& name : wanted.empty() ? names : wanted) {
        const int axis = name.size() == 1 ? name[0] - 'x' : -1;
        const bool is_axis = axis >= 0 && axis < 3;
        const Attribute* attribute = is_axis ? nullptr : find(cloud.attributes, name);
        for (int64_t c = 0; c < (is_axis ? 1 : attribute->components()); ++c) {
            for (int64_t i = 0; i < cloud.size(); ++i)
                values[static_cast<size_t>(i)] = is_axis ? cloud.world(i, axis) : attribute->value(i, c);
            body(is_axis || attribute->components() == 1 ? name : fmt::format("{}[{}]", name, c), values);
        }
    }
}

struct NamedHistogram {
    std::string name;
    geometry::Histogram histogram;
};

/// Histograms as steps, two beside each other.
Image draw_histograms(const std::vector<NamedHistogram>& columns, int bins) {
    constexpr int64_t kWidth = 480, kHeight = 300;
    const auto count = static_cast<int64_t>(columns.size()), across = std::min<int64_t>(count, 2);
    Image image(across * kWidth, (count + 1) / 2 * kHeight, 3);
    std::fill_n(image.pixels.data(), image.pixels.elements(), uint8_t{255});
    for (int64_t k = 0; k < count; ++k) {
        const auto& [name, histogram] = columns[static_cast<size_t>(k)];
        picture::Series steps;
        const double width = (histogram.high - histogram.low) / bins;
        for (int bin = 0; bin < bins; ++bin)
            for (const int edge : {bin, bin + 1}) {
                steps.x.push_back(histogram.low + width * edge);
                steps.y.push_back(static_cast<double>(histogram.counts[static_cast<size_t>(bin)]));
            }
        picture::LineChart chart;
        chart.x.label = name;
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

Result run_stats(const StatsOptions& options, const Common& common) {
    STIPPLE_REQUIRE(options.bins >= 1 && options.bins <= 10000, "--bins must be 1 to 10000, got {}", options.bins);
    require_picture(options.picture, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    const Mesh mesh =
        load_with_progress(options.input.path, options.input.from, options.input.item, common, result.warnings);
    const PointCloud& cloud = mesh.vertices;
    const geometry::PointDensity density = geometry::point_density(cloud.positions.view());
    Table table{
        {"value", "min", "1 %", "5 %", "25 %", "median", "75 %", "95 %", "99 %", "max", "mean", "std", "non-finite"},
        {}};
    result.fields["points"] = cloud.size();
    result.fields["density"] = {{"spacing", density.spacing},
                                {"mean_spacing", density.mean_spacing},
                                {"per_area", density.per_area},
                                {"per_volume", density.per_volume}};
    result.fields["values"] = Json::array();
    Table text{table.columns, {}};  // with digits for coordinates of maps
    std::vector<NamedHistogram> histograms;
    const auto add = [&](const std::string& name, const std::vector<double>& values) {
        const geometry::ValueStatistics s = geometry::statistics_of(values);
        const geometry::Histogram histogram = geometry::histogram_of(values, options.bins);
        const auto number = [&](double x) { return s.count == 0 ? Json() : Json(x); };
        std::vector<double> numbers = {s.min};
        Json percentiles = Json::object();
        for (size_t i = 0; i < s.percentiles.size(); ++i) {
            numbers.push_back(s.percentiles[i]);
            percentiles[std::to_string(geometry::ValueStatistics::kPercents[i])] = number(s.percentiles[i]);
        }
        for (const double x : {s.max, s.mean, s.deviation}) numbers.push_back(x);
        table.rows.push_back({name});
        text.rows.push_back({name});
        for (const double x : numbers) {
            table.rows.back().push_back(number(x));
            text.rows.back().push_back(s.count == 0 ? Json("-")
                                                    : Json(fmt::format("{:.{}g}", x, std::abs(x) < 1e5 ? 6 : 9)));
        }
        table.rows.back().push_back(s.non_finite);
        text.rows.back().push_back(s.non_finite);
        result.fields["values"].push_back(
            {{"name", name},
             {"count", s.count},
             {"non_finite", s.non_finite},
             {"min", number(s.min)},
             {"max", number(s.max)},
             {"mean", number(s.mean)},
             {"std", number(s.deviation)},
             {"percentiles", percentiles},
             {"histogram", {{"low", histogram.low}, {"high", histogram.high}, {"counts", histogram.counts}}}});
        histograms.push_back({name, histogram});
    };
    about_file(options.input.path, [&] { for_each_value(cloud, options.of, add); });
    result.text =
        fmt::format("{}: {} points, {:.4g} to the nearest other (median), {:.4g} a square unit, {:.4g} a cubic unit\n",
                    printable(options.input.path), grouped(cloud.size()), density.spacing, density.per_area,
                    density.per_volume) +
        format_table(text, "");
    save_picture(
        options.picture, [&] { return draw_histograms(histograms, options.bins); }, common, result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_stats(Arguments& root, Common& common) {
    auto options = std::make_shared<StatsOptions>();
    Arguments& app = root.command("stats", "Percentiles and histograms of coordinates and attributes, and density");
    Option input = app.option("INPUT", options->input.path, "The file; - is standard input");
    app.option("--of", options->of, "Only of these: x, y, z and attributes")
        .separated_by(',')
        .one_word()
        .text("A,B,...");
    app.option("--bins", options->bins, "Of the histograms");
    app.option("--picture", options->picture, "Draw the histograms into this .png");
    add_input_format(app, options->input);
    app.footer(
        "Example:\n  stipple stats scan.las --of z,intensity --picture stats.png\n"
        "  stipple stats scan.ply --table csv");
    return {&app, [options, &common] { return run_stats(*options, common); }, {input}};
}

}  // namespace stipple::cli
