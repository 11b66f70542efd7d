#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/sample.h"

namespace stipple::cli {
namespace {

using tasks::SampleMethod;
using tasks::SampleSettings;

struct SampleOptions {
    std::string method = "fps", keep = "centroid";
    int64_t count = 0, start = 0;
    double ratio = 0, voxel = 0, radius = 0, spacing = 0;
    int k = 16, dimension = 2;
    bool progressive = false;
};

/// SampleOptions of other methods than the chosen one are mistakes, unless they say what holds anyway (as
/// --print-config does).
void require_own_options(const SampleOptions& options, SampleMethod method) {
    const SampleOptions defaults;
    const struct {
        bool changed;
        const char* name;
        SampleMethod method;
    } owned[] = {{options.start != defaults.start, "start", SampleMethod::fps},
                 {options.voxel != defaults.voxel, "voxel", SampleMethod::voxel},
                 {options.keep != defaults.keep, "keep", SampleMethod::voxel},
                 {options.radius != defaults.radius, "radius", SampleMethod::poisson},
                 {options.spacing != defaults.spacing, "spacing", SampleMethod::spacing},
                 {options.progressive, "progressive", SampleMethod::poisson},
                 {options.k != defaults.k, "k", SampleMethod::inverse_density},
                 {options.dimension != defaults.dimension, "dimension", SampleMethod::inverse_density}};
    for (const auto& option : owned)
        STIPPLE_REQUIRE(!option.changed || option.method == method, "--{} is for --method {}", option.name,
                        name_of(option.method));
}

SampleSettings settings_of(const SampleOptions& options, const Common& common) {
    SampleSettings settings;
    // --spacing alone says how: it is the one method that it belongs to.
    const bool by_spacing = options.spacing != 0 && options.method == SampleOptions().method;
    settings.method = by_spacing ? SampleMethod::spacing : tasks::sample_method_by_name(options.method);
    settings.spacing = options.spacing;
    settings.seed = common.seed;
    settings.start = options.start;
    settings.voxel = options.voxel;
    settings.nearest = options.keep == "nearest";
    settings.radius = options.radius;
    settings.progressive = options.progressive;
    settings.k = options.k;
    settings.dimension = options.dimension;
    require_own_options(options, settings.method);
    if (settings.method == SampleMethod::voxel) {
        STIPPLE_REQUIRE(options.count == 0 && options.ratio == 0, "--method voxel takes no count: --voxel decides");
        STIPPLE_REQUIRE(options.voxel != 0, "--method voxel needs --voxel SIZE");
        STIPPLE_REQUIRE(options.voxel > 0 && std::isfinite(options.voxel), "--voxel must be above 0, got {}",
                        options.voxel);
    } else if (settings.method == SampleMethod::spacing) {
        STIPPLE_REQUIRE(options.count == 0 && options.ratio == 0, "--spacing takes no count: the distance decides");
        STIPPLE_REQUIRE(options.spacing != 0, "--method spacing needs --spacing D");
        STIPPLE_REQUIRE(options.spacing > 0 && std::isfinite(options.spacing), "--spacing must be above 0, got {}",
                        options.spacing);
    } else {
        STIPPLE_REQUIRE((options.count == 0) != (options.ratio == 0),
                        "how many points? Give -n COUNT, --ratio R or --spacing D");
        STIPPLE_REQUIRE(options.ratio >= 0 && options.ratio <= 1, "--ratio must be above 0, to 1, got {}",
                        options.ratio);
    }
    STIPPLE_REQUIRE(options.radius >= 0 && std::isfinite(options.radius), "--radius must be from 0, got {}",
                    options.radius);
    STIPPLE_REQUIRE(options.k >= 1 && options.k <= 127, "--k must be 1 to 127, got {}", options.k);
    STIPPLE_REQUIRE(options.dimension >= 1 && options.dimension <= 3, "--dimension must be 1 to 3, got {}",
                    options.dimension);
    return settings;
}

Image before_and_after(const PointCloud& before, const PointCloud& after, const std::string& method) {
    const picture::Panel panels[] = {
        {.cloud = &before, .caption = fmt::format("input, {} points", grouped(before.size()))},
        {.cloud = &after, .caption = fmt::format("{}, {} points", method, grouped(after.size()))}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

/// A sample of the finite points, in place of the mesh.
StepReport sample(Mesh& mesh, SampleSettings settings, const SampleOptions& options, Device device) {
    StepReport report;
    const PointCloud cloud = finite_points(mesh, report);
    settings.count = options.count;
    if (options.ratio > 0)
        settings.count = std::max<int64_t>(1, std::llround(options.ratio * static_cast<double>(cloud.size())));
    STIPPLE_REQUIRE(settings.start < cloud.size(), "--start {} of {} points", settings.start, cloud.size());
    Mesh sampled;
    sampled.vertices = tasks::sample_cloud(cloud, settings, device);
    mesh = std::move(sampled);
    const int64_t points = mesh.vertices.size();
    const std::string method(name_of(settings.method));
    report.fields["method"] = method;
    report.fields["sampled"] = points;
    if (settings.method == SampleMethod::voxel) report.fields["voxel"] = settings.voxel;
    if (settings.method == SampleMethod::spacing) report.fields["spacing"] = settings.spacing;
    report.what = fmt::format("{} of {} points by {}", grouped(points), grouped(cloud.size()), method);
    return report;
}

using SampleCommand = CloudCommand<SampleOptions>;

Result run_sample(const SampleCommand& command, const Common& common) {
    const auto& [input, output] = command.files;
    const SampleSettings settings = settings_of(*command.how, common);
    // Everything about the outputs is settled before the first byte is read.
    const io::Format format = require_output(output, common);
    require_picture(command.picture, common);
    Result result;
    Mesh mesh = load_input(input, common, result);
    const int64_t all = mesh.vertices.size();
    const PointCloud before = command.picture.empty() ? PointCloud() : drop_nonfinite(mesh.vertices);
    const StepReport report =
        about_file(input.path, [&] { return sample(mesh, settings, *command.how, parse_device(common.device)); });
    tell(report, input.path, result);
    const std::string method(name_of(settings.method));
    save_output(mesh, output, format, report.what, common, result);
    save_picture(
        command.picture, [&] { return before_and_after(before, mesh.vertices, method); }, common, result);
    if (!common.table.empty()) {
        const auto finite = all - static_cast<int64_t>(report.fields.value("non_finite").number());
        const Table table{
            {"file", "format", "method", "points", "sampled", "written"},
            {{output.path, io::info_of(format).name, method, finite, mesh.vertices.size(), !common.dry_run}}};
        result.text = format_table(table, common.table);
    }
    return result;
}

std::shared_ptr<SampleOptions> add_sample_options(Arguments& app) {
    auto options = std::make_shared<SampleOptions>();
    app.option("-n,--count", options->count, "Points wanted").from_zero().no_default();
    app.option("--ratio", options->ratio, "Points wanted, of those there are: 0.1").no_default();
    app.option("--method", options->method, "random, fps, voxel, poisson, inverse-density, spacing");
    app.option("--voxel", options->voxel, "voxel: edge of a cell, one point for each").no_default();
    app.option("--keep", options->keep, "voxel: centroid, or the point nearest to the middle")
        .one_of({"centroid", "nearest"})
        .text("centroid|nearest");
    app.option("--start", options->start, "fps: the first point, from 0").from_zero();
    app.option("--radius", options->radius, "poisson: of the discs; 0 chooses");
    app.flag("--progressive", options->progressive, "poisson: in an order whose beginnings are spread too");
    app.option("--spacing", options->spacing, "spacing: no two points within it, however many that leaves")
        .text("D")
        .no_default();
    app.option("--k", options->k, "inverse-density: neighbours that tell density, 1 to 127");
    app.option("--dimension", options->dimension, "inverse-density: 1, 2 surface, 3 solid");
    return options;
}

}  // namespace

MakeStep add_sample_step(Arguments& app, const Common& common) {
    return [options = add_sample_options(app), &common] {
        const SampleSettings settings = settings_of(*options, common);
        // Means are new points; all other methods choose among those there are.
        Step step{.only_removes = settings.method != SampleMethod::voxel || settings.nearest};
        step.run = [options, settings, &common](Mesh& mesh) {
            return sample(mesh, settings, *options, parse_device(common.device));
        };
        return step;
    };
}

Command add_sample(Arguments& root, Common& common) {
    auto command = std::make_shared<SampleCommand>();
    Arguments& app = root.command("sample", "Choose fewer points of a cloud");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    command->how = add_sample_options(app);
    app.option("--picture", command->picture, "Draw input and result side by side into this .png");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Example:\n  stipple sample scan.ply -n 4096 -o few.ply --picture few.png\n"
        "  stipple sample scan.las --method voxel --voxel 0.05 -o thin.las");
    return {&app, [command, &common] { return run_sample(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
