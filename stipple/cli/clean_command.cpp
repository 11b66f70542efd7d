#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/geometry/outliers.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct CleanOptions {
    std::vector<std::string> methods = {"nonfinite", "statistical"};
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

/// Which points of the cloud stay and which go, by their indices, both in its order.
struct Cleaned {
    std::vector<int32_t> left, removed;
    StepReport report;
    Table table{{"step", "removed", "left"}, {}};
};

Cleaned clean(const Mesh& mesh, const CleanOptions& options, Device device) {
    const PointCloud& cloud = mesh.vertices;
    Cleaned cleaned;
    StepReport& report = cleaned.report;
    std::vector<int32_t>& left = cleaned.left;
    warn_of_faces(mesh.faces(), report);
    left.resize(static_cast<size_t>(cloud.size()));
    for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int32_t>(i);
    report.fields["points"] = cloud.size();
    report.fields["steps"] = Json::array();
    std::string told;
    for (const std::string& step : steps_of(options)) {
        Json fields = {{"method", step}};
        const std::vector<uint8_t> keep = keep_mask(step, part_of(cloud, left), options, device, fields);
        const size_t before = left.size();
        std::vector<int32_t> stays;
        for (size_t i = 0; i < before; ++i) (keep[i] ? stays : cleaned.removed).push_back(left[i]);
        left = std::move(stays);
        const auto gone = static_cast<int64_t>(before - left.size());
        fields["removed"] = gone;
        report.fields["steps"].push_back(fields);
        told += fmt::format("{}{} {}", told.empty() ? "" : ", ", step, grouped(gone));
        cleaned.table.rows.push_back({step, gone, static_cast<int64_t>(left.size())});
    }
    std::sort(cleaned.removed.begin(), cleaned.removed.end());
    report.fields["removed"] = cleaned.removed.size();
    if (left.empty()) throw Error(ErrorCode::bad_file, fmt::format("no point is left; removed: {}", told));
    report.what = fmt::format("{} of {} points; removed: {}", grouped(static_cast<int64_t>(left.size())),
                              grouped(cloud.size()), told);
    return cleaned;
}

struct CleanCommand : CloudCommand<CleanOptions> {
    OutputFile removed;
};

Result run_clean(const CleanCommand& command, const Common& common) {
    const auto& [input, output] = command.files;
    require_sense(*command.how);
    STIPPLE_REQUIRE(command.removed.path.empty() || command.removed.path != output.path,
                    "--removed-to and -o are the same file");
    const io::Format format = require_output(output, common);
    const io::Format removed_format = command.removed.path.empty() ? format : require_output(command.removed, common);
    require_picture(command.picture, common);
    Result result;
    const Mesh mesh = load_input(input, common, result);
    const Cleaned done = about_file(input.path, [&] { return clean(mesh, *command.how, parse_device(common.device)); });
    tell(done.report, input.path, result);
    Mesh cleaned, rest;
    cleaned.vertices = part_of(mesh.vertices, done.left);
    save_output(cleaned, output, format, done.report.what, common, result);
    if (!command.removed.path.empty()) {
        rest.vertices = part_of(mesh.vertices, done.removed);
        if (done.removed.empty() && !io::info_of(removed_format).counts)
            result.warnings.push_back(fmt::format("{}: not written, nothing was removed and {} cannot hold no points",
                                                  command.removed.path, io::info_of(removed_format).name));
        else
            save_output(rest, command.removed, removed_format,
                        fmt::format("the {} removed points", grouped(rest.vertices.size())), common, result);
    }
    save_picture(
        command.picture, [&] { return before_and_after(mesh.vertices, cleaned.vertices, done.removed); }, common,
        result);
    if (!common.table.empty()) result.text = format_table(done.table, common.table);
    return result;
}

std::shared_ptr<CleanOptions> add_clean_options(Arguments& app) {
    auto options = std::make_shared<CleanOptions>();
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
    return options;
}

}  // namespace

MakeStep add_clean_step(Arguments& app, const Common& common) {
    return [options = add_clean_options(app), &common] {
        require_sense(*options);
        Step step{.only_removes = true};
        step.run = [options, &common](Mesh& mesh) {
            Cleaned cleaned = clean(mesh, *options, parse_device(common.device));
            Mesh left;
            left.vertices = part_of(mesh.vertices, cleaned.left);
            mesh = std::move(left);
            return std::move(cleaned.report);
        };
        return step;
    };
}

Command add_clean(Arguments& root, Common& common) {
    auto command = std::make_shared<CleanCommand>();
    Arguments& app = root.command("clean", "Remove outliers, duplicates and points without a place");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    command->how = add_clean_options(app);
    app.option("--removed-to", command->removed.path, "Write what was removed here");
    app.option("--picture", command->picture, "Draw input and result side by side into this .png");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Example:\n  stipple clean scan.ply -o clean.ply --removed-to rest.ply --picture clean.png\n"
        "  stipple clean scan.las --method duplicates,radius --radius 0.5 -o clean.las");
    return {&app, [command, &common] { return run_clean(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
