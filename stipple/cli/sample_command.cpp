#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/core/folder.h"
#include "stipple/core/interrupt.h"
#include "stipple/geometry/glyphs.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/network_sample.h"

namespace stipple::cli {
namespace {

using tasks::SampleMethod;
using tasks::SampleSettings;

struct SampleOptions {
    std::string method = "fps", keep = "centroid", model;
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
    STIPPLE_REQUIRE(options.model.empty() || tasks::has_network(method),
                    "--model is for methods with a network: samplenet-cls, -reg and -rec, snet, gumbel, critical");
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

/// Few points, as balls: dots of a pixel or two would be lost in the cloud that they are shown on.
Mesh balls_of(const PointCloud& cloud) {
    double least[3] = {INFINITY, INFINITY, INFINITY}, most[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int64_t i = 0; i < cloud.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) {
            const double x = cloud.positions.view()(i, axis);
            least[axis] = std::min(least[axis], x);
            most[axis] = std::max(most[axis], x);
        }
    const double diagonal = std::hypot(most[0] - least[0], most[1] - least[1], most[2] - least[2]);
    Array<float, 1> radii({cloud.size()});
    std::fill_n(radii.data(), cloud.size(), static_cast<float>(diagonal > 0 ? 0.012 * diagonal : 1));
    Mesh balls = geometry::sphere_glyphs(cloud.positions.view(), radii.view(), 2);
    balls.vertices.origin = cloud.origin;
    return balls;
}

constexpr int64_t kBalls = 512;  // chosen points that are drawn as balls on the pale cloud, at most

Image before_and_after(const PointCloud& before, const PointCloud& after, SampleMethod method) {
    const bool has_balls = after.size() <= kBalls && method != SampleMethod::voxel;
    const Mesh balls = has_balls ? balls_of(after) : Mesh();
    picture::Panel chosen{.cloud = &after,
                          .caption = fmt::format("{}, {} points", name_of(method), grouped(after.size()))};
    if (has_balls) {
        chosen.cloud = &before;
        chosen.color_by = "#d5d9df";
        chosen.mesh = &balls;
        chosen.mesh_color = {206, 70, 44};
    }
    const picture::Panel panels[] = {
        {.cloud = &before, .caption = fmt::format("input, {} points", grouped(before.size()))}, chosen};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

/// What makes the sample: a network where the method has one.
struct Sampling {
    std::shared_ptr<const SampleOptions> options;
    SampleSettings settings;
    Device device;
    std::shared_ptr<tasks::NetworkSampler> network;
};

Sampling sampling_of(std::shared_ptr<const SampleOptions> options, const Common& common) {
    Sampling sampling{options, settings_of(*options, common), parse_device(common.device), nullptr};
    if (tasks::has_network(sampling.settings.method))
        sampling.network = std::make_shared<tasks::NetworkSampler>(
            tasks::load_sampler(sampling.settings.method, options->model, options->count, {.device = common.device}));
    return sampling;
}

/// A sample of the finite points, in place of the mesh.
StepReport sample(Mesh& mesh, const Sampling& sampling) {
    const SampleOptions& options = *sampling.options;
    SampleSettings settings = sampling.settings;
    StepReport report;
    const PointCloud cloud = finite_points(mesh, report);
    settings.count = options.count;
    if (options.ratio > 0)
        settings.count = std::max<int64_t>(1, std::llround(options.ratio * static_cast<double>(cloud.size())));
    STIPPLE_REQUIRE(settings.start < cloud.size(), "--start {} of {} points", settings.start, cloud.size());
    Mesh sampled;
    std::string who;
    if (sampling.network) {
        tasks::NetworkSample chosen = tasks::sample_by_network(*sampling.network, cloud, settings.count, settings.seed);
        sampled.vertices = std::move(chosen.cloud);
        report.fields["proposed"] = chosen.proposed;
        who = chosen.proposed == settings.count ? ", all its own"
                                                : fmt::format(", {} its own, {} by fps", grouped(chosen.proposed),
                                                              grouped(settings.count - chosen.proposed));
    } else {
        sampled.vertices = tasks::sample_cloud(cloud, settings, sampling.device);
    }
    mesh = std::move(sampled);
    const int64_t points = mesh.vertices.size();
    const std::string method(name_of(settings.method));
    report.fields["method"] = method;
    report.fields["sampled"] = points;
    if (settings.method == SampleMethod::voxel) report.fields["voxel"] = settings.voxel;
    if (settings.method == SampleMethod::spacing) report.fields["spacing"] = settings.spacing;
    report.what = fmt::format("{} of {} points by {}{}", grouped(points), grouped(cloud.size()), method, who);
    return report;
}

struct SampleCommand {
    std::vector<std::string> inputs;
    InputFile input;  // its format
    OutputFile output;
    std::string picture, shard;
    std::shared_ptr<SampleOptions> how;
};

const std::vector<std::string> kColumns = {"file", "format", "method", "points", "sampled", "written"};

/// What one cloud became: written, and a row of the table.
std::vector<Json> save_sample(const Mesh& sampled, int64_t finite, const StepReport& report, const OutputFile& output,
                              io::Format format, SampleMethod method, const Common& common, Result& result) {
    save_output(sampled, output, format, report.what, common, result);
    return {output.path, io::info_of(format).name, std::string(name_of(method)),
            finite,      sampled.vertices.size(),  !common.dry_run};
}

Result run_sample(const SampleCommand& command, const Common& common) {
    InputFile input = command.input;
    input.path = command.inputs[0];
    // Everything about the outputs is settled before the first byte is read.
    const io::Format format = require_output(command.output, common);
    require_picture(command.picture, common);
    const Sampling sampling = sampling_of(command.how, common);
    Result result;
    Mesh mesh = load_input(input, common, result);
    const int64_t all = mesh.vertices.size();
    const PointCloud before = command.picture.empty() ? PointCloud() : drop_nonfinite(mesh.vertices);
    const StepReport report = about_file(input.path, [&] { return sample(mesh, sampling); });
    tell(report, input.path, result);
    const auto finite = all - static_cast<int64_t>(report.fields.value("non_finite").number());
    const Table table{
        kColumns,
        {save_sample(mesh, finite, report, command.output, format, sampling.settings.method, common, result)}};
    save_picture(
        command.picture, [&] { return before_and_after(before, mesh.vertices, sampling.settings.method); }, common,
        result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

/// Many clouds, each into a file of a folder.
Result run_samples(const SampleCommand& command, const Common& common) {
    require_one_stdin(command.inputs);
    STIPPLE_REQUIRE(command.picture.empty(), "--picture is for one cloud");
    STIPPLE_REQUIRE(command.input.item < 0, "--item is for one file");
    const Shard shard = parse_shard(command.shard);
    std::vector<data::CloudEntry> entries = data::list_clouds(command.inputs);
    std::vector<OutputFile> outputs = outputs_of(command.output, entries);
    const size_t listed = entries.size();
    keep_shard(shard, entries, outputs);
    if (entries.empty()) return nothing_of_shard(command.shard, listed);
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common));
    const Sampling sampling = sampling_of(command.how, common);
    FileProgress file_progress(common);
    const data::ReadClouds how = reading({.clouds = {}, .from = command.input.from}, file_progress);
    Result result;
    result.fields["inputs"] = command.inputs;
    Json files = Json::array();
    Table table{kColumns, {}};
    for_each_input(entries.size(), "clouds", result, [&](size_t i) {
        check_interrupted();
        const std::string name = entries[i].name();
        try {
            Mesh mesh = data::load_entry(entries[i], how, result.warnings);
            const int64_t all = mesh.vertices.size();
            const StepReport report = about_file(name, [&] { return sample(mesh, sampling); });
            for (const std::string& warning : report.warnings)
                result.warnings.push_back(fmt::format("{}: {}", name, warning));
            const auto finite = all - static_cast<int64_t>(report.fields.value("non_finite").number());
            table.rows.push_back(
                save_sample(mesh, finite, report, outputs[i], formats[i], sampling.settings.method, common, result));
            Json file = report.fields;
            file["path"] = name;
            files.push_back(std::move(file));
        } catch (const Error& error) {
            files.push_back({{"path", name}, {"error", error.message()}});
            throw;
        }
    });
    result.fields["files"] = std::move(files);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

std::shared_ptr<SampleOptions> add_sample_options(Arguments& app) {
    auto options = std::make_shared<SampleOptions>();
    app.option("-n,--count", options->count, "Points wanted").from_zero().no_default();
    app.option("--ratio", options->ratio, "Points wanted, of those there are: 0.1").no_default();
    app.option("--method", options->method,
               "random, fps, voxel, poisson, inverse-density, spacing; by a network: samplenet-cls, samplenet-reg, "
               "samplenet-rec, snet, gumbel, critical");
    app.option("--model", options->model, "by a network: its weights by path or name, or an engine");
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
        const Sampling sampling = sampling_of(options, common);
        // Means are new points; all other methods choose among those there are.
        Step step{.only_removes = sampling.settings.method != SampleMethod::voxel || sampling.settings.nearest};
        step.run = [sampling](Mesh& mesh) { return sample(mesh, sampling); };
        return step;
    };
}

Command add_sample(Arguments& root, Common& common) {
    auto command = std::make_shared<SampleCommand>();
    Arguments& app = root.command("sample", "Choose fewer points of a cloud");
    Option input = app.option("INPUT", command->inputs, "The file, - is standard input; several; folders of them");
    Option output = app.option("-o,--output", command->output.path, "File, or folder for many; - is standard output");
    command->how = add_sample_options(app);
    app.option("--picture", command->picture, "Draw input and result side by side into this .png");
    add_output_format(app, command->output);
    add_input_format(app, command->input);
    add_shard(app, command->shard);
    app.footer(
        "Example:\n  stipple sample scan.ply -n 4096 -o few.ply --picture few.png\n"
        "  stipple sample scan.las --method voxel --voxel 0.05 -o thin.las\n"
        "  stipple sample scans/ -n 64 --method critical -o few/");
    const auto run = [command, &common] {
        const bool is_one = command->shard.empty() && command->inputs.size() == 1 && !is_folder(command->inputs[0]) &&
                            !command->output.path.ends_with('/') && !is_folder(command->output.path);
        return is_one ? run_sample(*command, common) : run_samples(*command, common);
    };
    return {&app, run, {input, output}};
}

}  // namespace stipple::cli
