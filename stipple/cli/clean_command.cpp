#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/geometry/outliers.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct CleanOptions {
    InputFile input;
    OutputFile output, removed;
    std::vector<std::string> methods = {"nonfinite", "statistical"};
    std::string picture;
    double ratio = 2, radius = 0, distance = 0;
    int k = 16, neighbours = 2;
};

bool has(const CleanOptions& options, const char* method) {
    return std::find(options.methods.begin(), options.methods.end(), method) != options.methods.end();
}

void require_sense(const CleanOptions& options) {
    const CleanOptions defaults;
    const struct {
        bool changed;
        const char *name, *method;
    } owned[] = {{options.k != defaults.k, "k", "statistical"},
                 {options.ratio != defaults.ratio, "ratio", "statistical"},
                 {options.radius != defaults.radius, "radius", "radius"},
                 {options.neighbours != defaults.neighbours, "neighbours", "radius"},
                 {options.distance != defaults.distance, "distance", "duplicates"}};
    for (const auto& option : owned)
        STIPPLE_REQUIRE(!option.changed || has(options, option.method), "--{} is for --method {}", option.name,
                        option.method);
    STIPPLE_REQUIRE(!options.methods.empty(), "--method is empty");
    for (size_t i = 0; i < options.methods.size(); ++i)
        STIPPLE_REQUIRE(std::find(options.methods.begin(), options.methods.begin() + i, options.methods[i]) ==
                            options.methods.begin() + i,
                        "--method {} twice", options.methods[i]);
    STIPPLE_REQUIRE(options.k >= 2 && options.k <= 128, "--k must be 2 to 128, got {}", options.k);
    STIPPLE_REQUIRE(options.ratio >= 0 && std::isfinite(options.ratio), "--ratio must be from 0, got {}",
                    options.ratio);
    STIPPLE_REQUIRE(options.radius != 0 || !has(options, "radius"), "--method radius needs --radius R");
    STIPPLE_REQUIRE(options.radius == 0 || (static_cast<float>(options.radius) > 0 && std::isfinite(options.radius)),
                    "--radius must be above 0, got {}", options.radius);
    STIPPLE_REQUIRE(options.neighbours >= 1, "--neighbours must be from 1, got {}", options.neighbours);
    STIPPLE_REQUIRE(options.distance >= 0 && std::isfinite(options.distance), "--distance must be from 0, got {}",
                    options.distance);
    STIPPLE_REQUIRE(options.removed.path.empty() || options.removed.path != options.output.path,
                    "--removed-to and -o are the same file");
}

/// The steps in order. Outliers are outliers among finite points: what is not finite goes before them, and is counted.
std::vector<std::string> steps_of(const CleanOptions& options) {
    std::vector<std::string> steps = options.methods;
    const auto first = std::find_if(steps.begin(), steps.end(),
                                    [](const std::string& name) { return name == "statistical" || name == "radius"; });
    const auto nonfinite = std::find(steps.begin(), steps.end(), "nonfinite");
    if (first == steps.end() || nonfinite < first) return steps;
    if (nonfinite != steps.end()) steps.erase(nonfinite);
    steps.insert(steps.begin(), "nonfinite");
    return steps;
}

/// Which points of the cloud a step keeps; says in `report` what it went by.
std::vector<uint8_t> keep_mask(const std::string& step, const PointCloud& cloud, const CleanOptions& options,
                               Device device, Json& report) {
    const int64_t n = cloud.size();
    std::vector<uint8_t> keep(static_cast<size_t>(n), 0);
    if (step == "nonfinite") {
        const float* at = cloud.positions.data();
        for (int64_t i = 0; i < n; ++i, at += 3)
            keep[i] = std::isfinite(at[0]) && std::isfinite(at[1]) && std::isfinite(at[2]);
        return keep;
    }
    if (step == "duplicates") {
        report["distance"] = options.distance;
        const geometry::UniquePoints unique =
            geometry::unique_points(cloud.positions.view(), static_cast<float>(options.distance));
        for (const int32_t i : unique.kept.span()) keep[i] = 1;
        return keep;
    }
    const Array<float, 2> points = cloud.positions.to(device);
    Array<uint8_t, 1> mask({n}, device);
    if (step == "statistical") {
        const geometry::OutlierStatistics found =
            geometry::statistical_outliers(points.view(), mask.view(), options.k, options.ratio);
        report.update({{"k", options.k}, {"ratio", options.ratio}});
        if (n > 0) report["threshold"] = found.threshold;
    } else {
        geometry::radius_outliers(points.view(), mask.view(), static_cast<float>(options.radius), options.neighbours);
        report.update({{"radius", options.radius}, {"neighbours", options.neighbours}});
    }
    const Array<uint8_t, 1> on_host = mask.to({});
    std::copy(on_host.data(), on_host.data() + n, keep.begin());
    return keep;
}

PointCloud part_of(const PointCloud& cloud, const std::vector<int32_t>& indices) {
    return select(cloud, View<const int32_t, 1>(indices.data(), {static_cast<int64_t>(indices.size())}));
}

/// What was removed in red, and what is left.
Image before_and_after(const PointCloud& before, const PointCloud& after, const std::vector<int32_t>& removed) {
    PointCloud marked;
    marked.positions = before.positions.clone();
    marked.origin = before.origin;
    Attribute color("color", DType::u8, before.size(), 3);
    const auto rgb = color.as<uint8_t>();
    std::fill_n(rgb.data(), rgb.elements(), uint8_t{170});
    for (const int32_t i : removed)
        for (int channel = 0; channel < 3; ++channel) rgb(i, channel) = channel == 0 ? 214 : 40;
    marked.attributes.push_back(std::move(color));
    const picture::Panel panels[] = {
        {.cloud = &marked,
         .caption = fmt::format("input, {} points, {} to go", grouped(before.size()), grouped(int64_t(removed.size()))),
         .color_by = "color"},
        {.cloud = &after, .caption = fmt::format("cleaned, {} points", grouped(after.size()))}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

Result run_clean(const CleanOptions& options, const Common& common) {
    require_sense(options);
    const io::Format format = require_output(options.output, common);
    const io::Format removed_format = options.removed.path.empty() ? format : require_output(options.removed, common);
    require_picture(options.picture, common);
    const Device device = parse_device(common.device);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    Mesh mesh = load_with_progress(options.input.path, options.input.from, options.input.item, common, result.warnings);
    if (mesh.faces() > 0)
        result.warnings.push_back(
            fmt::format("{}: the {} faces are left out", options.input.path, grouped(mesh.faces())));
    const PointCloud& cloud = mesh.vertices;
    std::vector<int32_t> left(static_cast<size_t>(cloud.size())), removed;
    for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int32_t>(i);
    result.fields["points"] = cloud.size();
    result.fields["steps"] = Json::array();
    std::string told;
    Table table{{"step", "removed", "left"}, {}};
    for (const std::string& step : steps_of(options)) {
        Json report = {{"method", step}};
        const std::vector<uint8_t> keep = about_file(
            options.input.path, [&] { return keep_mask(step, part_of(cloud, left), options, device, report); });
        const size_t before = left.size();
        std::vector<int32_t> stays;
        for (size_t i = 0; i < before; ++i) (keep[i] ? stays : removed).push_back(left[i]);
        left = std::move(stays);
        const auto gone = static_cast<int64_t>(before - left.size());
        report["removed"] = gone;
        result.fields["steps"].push_back(report);
        told += fmt::format("{}{} {}", told.empty() ? "" : ", ", step, grouped(gone));
        table.rows.push_back({step, gone, static_cast<int64_t>(left.size())});
    }
    std::sort(removed.begin(), removed.end());
    result.fields["removed"] = removed.size();
    Mesh cleaned, rest;
    cleaned.vertices = part_of(cloud, left);
    if (left.empty())
        throw Error(ErrorCode::bad_file, Place{options.input.path}, fmt::format("no point is left; removed: {}", told));
    save_output(
        cleaned, options.output, format,
        fmt::format("{} of {} points; removed: {}", grouped(cleaned.vertices.size()), grouped(cloud.size()), told),
        common, result);
    if (!options.removed.path.empty()) {
        rest.vertices = part_of(cloud, removed);
        if (removed.empty() && !io::info_of(removed_format).counts)
            result.warnings.push_back(fmt::format("{}: not written, nothing was removed and {} cannot hold no points",
                                                  options.removed.path, io::info_of(removed_format).name));
        else
            save_output(rest, options.removed, removed_format,
                        fmt::format("the {} removed points", grouped(rest.vertices.size())), common, result);
    }
    save_picture(
        options.picture, [&] { return before_and_after(cloud, cleaned.vertices, removed); }, common, result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_clean(Arguments& root, Common& common) {
    auto options = std::make_shared<CleanOptions>();
    Arguments& app = root.command("clean", "Remove outliers, duplicates and points without a place");
    Option input = app.option("INPUT", options->input.path, "The file; - is standard input");
    Option output = add_output(app, options->output);
    app.option("--method", options->methods, "Steps, in order: nonfinite, duplicates, statistical, radius")
        .one_of({"nonfinite", "duplicates", "statistical", "radius"})
        .separated_by(',')
        .one_word()
        .text("A,B,...");
    app.option("--k", options->k, "statistical: nearest points, itself among them, 2 to 128");
    app.option("--ratio", options->ratio, "statistical: deviations above the mean that go");
    app.option("--radius", options->radius, "radius: where others must lie").no_default();
    app.option("--neighbours", options->neighbours, "radius: how many others, at least");
    app.option("--distance", options->distance, "duplicates: within it points are the same");
    app.option("--removed-to", options->removed.path, "Write what was removed here");
    app.option("--picture", options->picture, "Draw input and result side by side into this .png");
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Example:\n  stipple clean scan.ply -o clean.ply --removed-to rest.ply --picture clean.png\n"
        "  stipple clean scan.las --method duplicates,radius --radius 0.5 -o clean.las");
    return {&app, [options, &common] { return run_clean(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
