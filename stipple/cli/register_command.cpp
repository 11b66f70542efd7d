#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/io/text.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/register.h"

namespace stipple::cli {
namespace {

using geometry::IcpResult;
using geometry::RigidTransform;

struct RegisterOptions {
    InputFile source, target;
    OutputFile output;
    std::string method = "icp", metric = "plane", kernel = "tukey", kernel_scale = "auto", scale = "auto";
    std::string init, transform_to, truth, picture;
    std::vector<double> voxel, max_distance;
    double trim = 1, min_fitness = geometry::RegistrationLimits{}.min_fitness;
    int iterations = 0;
    bool require_convergence = false, keep_failed = false;
};

constexpr double kDegrees = 180 / M_PI;

/// A length above 0, or 0 for "auto".
double length_or_auto(const std::string& option, const std::string& text) {
    if (text == "auto") return 0;
    double value = 0;
    STIPPLE_REQUIRE(io::parse_number(text, value) && value > 0 && std::isfinite(value),
                    "--{} must be auto or a length above 0, got {}", option, text);
    return value;
}

tasks::RegisterOptions register_options(const RegisterOptions& options) {
    STIPPLE_REQUIRE(options.method == "icp", "unknown method {}: there is icp", options.method);
    tasks::RegisterOptions wanted;
    wanted.icp.metric = options.metric == "point" ? geometry::IcpMetric::point : geometry::IcpMetric::plane;
    wanted.icp.kernel = tasks::kernel_by_name(options.kernel);
    wanted.icp.kernel_scale = length_or_auto("kernel-scale", options.kernel_scale);
    STIPPLE_REQUIRE(options.trim > 0 && options.trim <= 1, "--trim must be above 0, to 1, got {}", options.trim);
    STIPPLE_REQUIRE(options.min_fitness >= 0 && options.min_fitness <= 1, "--min-fitness must be 0 to 1, got {}",
                    options.min_fitness);
    wanted.icp.trim = options.trim;
    wanted.scale = length_or_auto("scale", options.scale);
    STIPPLE_REQUIRE(options.iterations >= 0, "--iterations must be from 1, got {}", options.iterations);
    wanted.iterations = options.iterations;
    wanted.require_convergence = options.require_convergence;
    wanted.min_fitness = options.min_fitness;
    if (options.max_distance.empty()) {
        STIPPLE_REQUIRE(options.voxel.empty(), "--voxel needs --max-distance, one for each");
        return wanted;
    }
    STIPPLE_REQUIRE(wanted.scale == 0, "--scale and --max-distance both choose the distances: give one");
    STIPPLE_REQUIRE(options.voxel.empty() || options.voxel.size() == options.max_distance.size(),
                    "{} x --voxel for {} x --max-distance", options.voxel.size(), options.max_distance.size());
    for (const double voxel : options.voxel)
        STIPPLE_REQUIRE(voxel >= 0 && std::isfinite(voxel), "--voxel must be from 0, got {}", voxel);
    for (const double distance : options.max_distance)
        STIPPLE_REQUIRE(distance > 0 && std::isfinite(distance), "--max-distance must be above 0, got {}", distance);
    wanted.icp.levels = tasks::levels_of(options.max_distance, options.voxel);
    return wanted;
}

Mesh load_input(const InputFile& input, const char* role, const Common& common, Result& result) {
    Mesh mesh = load_with_progress(input.path, input.from, input.item, common, result.warnings);
    const int64_t points = mesh.vertices.size(), finite = bounds_of(mesh.vertices).finite;
    if (finite == 0) throw Error(ErrorCode::bad_file, Place{input.path}, "has no finite points");
    if (finite < points)
        result.warnings.push_back(fmt::format("{}: {} of {} points not finite, not registered", input.path,
                                              grouped(points - finite), grouped(points)));
    result.fields[role] = {{"path", input.path}, {"points", points}, {"non_finite", points - finite}};
    return mesh;
}

Json json_of(const RigidTransform& transform) {
    Json rows = Json::array();
    for (int i = 0; i < 3; ++i) {
        Json row = transform.rotation[i];
        row.push_back(transform.translation[i]);
        rows.push_back(row);
    }
    rows.push_back({0.0, 0.0, 0.0, 1.0});
    return rows;
}

double length(const geometry::Vector3& v) {
    return std::hypot(v[0], v[1], v[2]);
}

void report_truth(const tasks::PoseError& error, Result& result,
                  std::vector<std::pair<std::string, std::string>>& lines) {
    result.fields["truth"] = {{"rotation_error_degrees", error.degrees},
                              {"translation_error", error.translation},
                              {"rms_displacement", error.rms}};
    lines.emplace_back("off the truth", fmt::format("{:.4g} degrees, {:.4g}; points {:.4g} RMS", error.degrees,
                                                    error.translation, error.rms));
}

void report(const tasks::Registration& registration, const RegisterOptions& options, Result& result,
            std::vector<std::pair<std::string, std::string>>& lines) {
    const IcpResult& found = registration.found;
    const std::vector<geometry::IcpLevel>& levels = registration.levels;
    const RigidTransform& t = found.transform;
    const double degrees = geometry::rotation_angle(t) * kDegrees, shift = length(t.translation);
    const char* stop = found.converged()                          ? "converged"
                       : found.stop == geometry::IcpStop::too_few ? "too few pairs"
                                                                  : "not converged";
    Json& fields = result.fields;
    fields["method"] = options.method;
    fields["metric"] = options.metric;
    fields["kernel"] = options.kernel;
    fields["levels"] = Json::array();
    for (const geometry::IcpLevel& level : levels)
        fields["levels"].push_back(
            {{"voxel", level.voxel}, {"max_distance", level.max_distance}, {"iterations", level.iterations}});
    fields["transform"] = json_of(t);
    fields["rotation_degrees"] = degrees;
    fields["quaternion_wxyz"] = geometry::to_quaternion(t);
    fields["translation"] = t.translation;
    fields["fitness"] = found.fitness;
    fields["rmse"] = found.pairs > 0 ? Json(found.rmse) : Json(nullptr);
    fields["pairs"] = found.pairs;
    fields["iterations"] = found.iterations;
    fields["converged"] = found.converged();
    fields["undetermined"] = found.undetermined;
    fields["verdict"] = geometry::to_string(registration.verdict.state);
    fields["reasons"] = registration.verdict.reasons;
    fields["history"] = Json::array();
    for (const geometry::IcpIteration& step : found.history)
        fields["history"].push_back({{"level", step.level},
                                     {"pairs", step.pairs},
                                     {"fitness", step.fitness},
                                     {"rmse", step.rmse},
                                     {"motion", step.motion}});
    lines.emplace_back("rotation", fmt::format("{:.6g} degrees", degrees));
    lines.emplace_back("translation", fmt::format("{:.6g} ({:.6g}, {:.6g}, {:.6g})", shift, t.translation[0],
                                                  t.translation[1], t.translation[2]));
    lines.emplace_back("fitness", levels.empty()
                                      ? "0"
                                      : fmt::format("{:.4f} within {:.4g}", found.fitness, levels.back().max_distance));
    lines.emplace_back("rmse", found.pairs > 0 ? fmt::format("{:.6g}", found.rmse) : "none: no pairs");
    lines.emplace_back("iterations", fmt::format("{}, {}", found.iterations, stop));
    lines.emplace_back("verdict", geometry::to_string(registration.verdict.state));
}

/// Both clouds in one, each in its colour.
PointCloud in_two_colors(const PointCloud& target, const PointCloud& source) {
    const int64_t n = target.size();
    PointCloud both(n + source.size());
    both.origin = target.origin;
    Attribute color("color", DType::u8, both.size(), 3);
    constexpr uint8_t kColors[2][3] = {{94, 141, 196}, {226, 124, 46}};
    for (int64_t i = 0; i < both.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) {
            const double place = i < n ? target.world(i, axis) : source.world(i - n, axis);
            both.positions.data()[3 * i + axis] = static_cast<float>(place - both.origin[axis]);
            color.as<uint8_t>()(i, axis) = kColors[i < n ? 0 : 1][axis];
        }
    both.attributes.push_back(std::move(color));
    return both;
}

Image before_and_after(const PointCloud& target, const PointCloud& start, const PointCloud& aligned) {
    const PointCloud before = in_two_colors(target, start), after = in_two_colors(target, aligned);
    const picture::Panel panels[] = {{.cloud = &before, .caption = "before: source orange, target blue"},
                                     {.cloud = &after, .caption = "after"}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

Result run_register(const RegisterOptions& options, const Common& common) {
    tasks::RegisterOptions wanted = register_options(options);
    require_one_stdin({options.source.path, options.target.path, options.init, options.truth});
    // Everything about the outputs is settled before the first byte is read.
    io::Format format{};
    if (!options.output.path.empty()) {
        require_free_stdout(options.output.path, common);
        format = require_output(options.output, common);
    }
    if (!options.transform_to.empty()) require_writable(options.transform_to, common.overwrite_mode());
    require_picture(options.picture, common);
    RigidTransform truth;
    if (!options.init.empty()) wanted.initial = tasks::load_transform(options.init);
    if (!options.truth.empty()) truth = tasks::load_transform(options.truth);

    Result result;
    result.fields["inputs"] = Json::array({options.source.path, options.target.path});
    Mesh source = load_input(options.source, "source", common, result);
    const Mesh target = load_input(options.target, "target", common, result);
    if (parse_device(common.device).type != DeviceType::cpu && common.device != "auto")
        result.warnings.emplace_back("register runs on the CPU");
    const tasks::Registration registration = about_file(
        options.source.path, [&] { return tasks::register_clouds(source.vertices, target.vertices, wanted); });
    if (registration.failure && !options.keep_failed) throw *registration.failure;
    if (registration.failure)
        result.warnings.push_back("registration failed: " + registration.verdict.text());
    else
        result.warnings.insert(result.warnings.end(), registration.verdict.reasons.begin(),
                               registration.verdict.reasons.end());
    const IcpResult& found = registration.found;

    std::vector<std::pair<std::string, std::string>> lines;
    report(registration, options, result, lines);
    if (!options.truth.empty()) report_truth(tasks::pose_error(found.transform, truth, source.vertices), result, lines);
    result.text = format_pairs(lines, 0);
    result.fields["outputs"] = Json::array();
    const PointCloud start =
        options.picture.empty() ? PointCloud() : geometry::transformed(source.vertices, wanted.initial);
    source.vertices = geometry::transformed(source.vertices, found.transform);
    if (!options.output.path.empty())
        save_output(source, options.output, format, fmt::format("{} points", grouped(source.vertices.size())), common,
                    result);
    save_text(options.transform_to, geometry::to_text(found.transform), "transform", common, result);
    save_picture(
        options.picture, [&] { return before_and_after(target.vertices, start, source.vertices); }, common, result);
    if (!common.table.empty()) {
        const Table table{{"source", "target", "method", "rotation (degrees)", "translation", "fitness", "rmse",
                           "iterations", "converged", "verdict"},
                          {{options.source.path, options.target.path, options.method, result.fields["rotation_degrees"],
                            length(found.transform.translation), found.fitness, result.fields["rmse"], found.iterations,
                            found.converged(), result.fields["verdict"]}}};
        result.text = format_table(table, common.table);
    }
    return result;
}

}  // namespace

Command add_register(Arguments& root, Common& common) {
    auto options = std::make_shared<RegisterOptions>();
    Arguments& app = root.command("register", "Find the rigid motion that lays one cloud on another");
    Option source = app.option("SOURCE", options->source.path, "The cloud that moves; - is standard input");
    Option target = app.option("TARGET", options->target.path, "The cloud that stays");
    app.option("-o,--output", options->output.path, "The moved source; - is standard output");
    app.option("--method", options->method, "icp: from a start that is roughly right");
    app.option("--metric", options->metric, "Distances to the target's points, or to the planes through them")
        .one_of({"point", "plane"})
        .text("point|plane");
    app.option("--kernel", options->kernel, "Doubt of far pairs: none, huber, tukey, cauchy, geman-mcclure")
        .one_of(tasks::kernel_names())
        .text("NAME");
    app.option("--kernel-scale", options->kernel_scale, "Residual at which doubt begins; auto: by the median")
        .text("auto|LENGTH");
    app.option("--scale", options->scale, "Radius that cells and distances fit; auto: the target's")
        .text("auto|LENGTH");
    app.option("--max-distance", options->max_distance, "Farthest pairs; several: one for each level, coarse to fine");
    app.option("--voxel", options->voxel, "Edge of the cells that thin both clouds, one for each --max-distance");
    app.option("--iterations", options->iterations, "Most steps of a level; 0: 30, at the last 50");
    app.option("--trim", options->trim, "Share of the pairs that counts, nearest first");
    app.option("--init", options->init, "Start from this 4 x 4 matrix (text)");
    app.option("--transform-to", options->transform_to, "Write the 4 x 4 matrix here");
    app.option("--truth", options->truth, "Compare with this 4 x 4 matrix");
    app.flag("--require-convergence", options->require_convergence, "Fail, and write nothing, without convergence");
    app.option("--min-fitness", options->min_fitness, "Fail, and write nothing, when fewer points have a pair");
    app.flag("--keep-failed", options->keep_failed, "Write the outputs of a failed registration too, and warn");
    app.option("--picture", options->picture, "Draw before and after into this .png");
    app.option("--from", options->source.from, "Format of the inputs, when name and content do not tell");
    add_output_format(app, options->output);
    app.footer(
        "Example:\n  stipple register scan2.ply scan1.ply -o aligned.ply --transform-to T.txt --picture both.png\n"
        "  stipple register a.las b.las --max-distance 5 1 --voxel 1 0.2 --require-convergence");
    return {&app,
            [options, &common] {
                RegisterOptions resolved = *options;
                resolved.target.from = resolved.source.from;
                return run_register(resolved, common);
            },
            {source, target}};
}

}  // namespace stipple::cli
