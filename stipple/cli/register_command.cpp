#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/files.h"
#include "stipple/cli/table.h"
#include "stipple/core/terminal.h"
#include "stipple/geometry/icp.h"
#include "stipple/io/text.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

using geometry::IcpOptions;
using geometry::IcpResult;
using geometry::RigidTransform;

struct Options {
    InputFile source, target;
    OutputFile output;
    std::string method = "icp", metric = "plane", kernel = "tukey", kernel_scale = "auto", scale = "auto";
    std::string init, transform_to, truth, picture;
    std::vector<double> voxel, max_distance;
    double trim = 1, min_fitness = 0;
    int iterations = 0;
    bool require_convergence = false;
};

constexpr double kDegrees = 180 / M_PI;

struct KernelName {
    geometry::RobustKernel kernel;
    const char* name;
};
constexpr KernelName kKernels[] = {{geometry::RobustKernel::none, "none"},
                                   {geometry::RobustKernel::huber, "huber"},
                                   {geometry::RobustKernel::tukey, "tukey"},
                                   {geometry::RobustKernel::cauchy, "cauchy"},
                                   {geometry::RobustKernel::geman_mcclure, "geman-mcclure"}};

/// A length above 0, or 0 for "auto".
double length_or_auto(const std::string& option, const std::string& text) {
    if (text == "auto") return 0;
    double value = 0;
    STIPPLE_REQUIRE(io::parse_number(text, value) && value > 0 && std::isfinite(value),
                    "--{} must be auto or a length above 0, got {}", option, text);
    return value;
}

std::vector<geometry::IcpLevel> levels_of(const Options& options) {
    const double scale = length_or_auto("scale", options.scale);
    STIPPLE_REQUIRE(options.iterations >= 0, "--iterations must be from 1, got {}", options.iterations);
    if (options.max_distance.empty()) {
        STIPPLE_REQUIRE(options.voxel.empty(), "--voxel needs --max-distance, one for each");
        return scale > 0 ? geometry::automatic_levels(scale) : std::vector<geometry::IcpLevel>{};
    }
    STIPPLE_REQUIRE(scale == 0, "--scale and --max-distance both choose the distances: give one");
    STIPPLE_REQUIRE(options.voxel.empty() || options.voxel.size() == options.max_distance.size(),
                    "{} x --voxel for {} x --max-distance", options.voxel.size(), options.max_distance.size());
    std::vector<geometry::IcpLevel> levels;
    for (size_t i = 0; i < options.max_distance.size(); ++i) {
        const double voxel = options.voxel.empty() ? 0 : options.voxel[i], distance = options.max_distance[i];
        STIPPLE_REQUIRE(voxel >= 0 && std::isfinite(voxel), "--voxel must be from 0, got {}", voxel);
        STIPPLE_REQUIRE(distance > 0 && std::isfinite(distance), "--max-distance must be above 0, got {}", distance);
        levels.push_back({voxel, distance, 50});
    }
    return levels;
}

IcpOptions icp_options(const Options& options) {
    STIPPLE_REQUIRE(options.method == "icp", "unknown method {}: there is icp", options.method);
    IcpOptions icp;
    icp.metric = options.metric == "point" ? geometry::IcpMetric::point : geometry::IcpMetric::plane;
    for (const KernelName& known : kKernels)
        if (options.kernel == known.name) icp.kernel = known.kernel;
    icp.kernel_scale = length_or_auto("kernel-scale", options.kernel_scale);
    STIPPLE_REQUIRE(options.trim > 0 && options.trim <= 1, "--trim must be above 0, to 1, got {}", options.trim);
    STIPPLE_REQUIRE(options.min_fitness >= 0 && options.min_fitness <= 1, "--min-fitness must be 0 to 1, got {}",
                    options.min_fitness);
    icp.trim = options.trim;
    icp.levels = levels_of(options);
    return icp;
}

RigidTransform load_transform(const std::string& path) {
    io::FileSource source(path);
    std::string text;
    char block[4096];
    constexpr size_t kMost = 65536;
    while (const int64_t count = source.read(reinterpret_cast<std::byte*>(block), sizeof block)) {
        text.append(block, static_cast<size_t>(count));
        if (text.size() > kMost)
            throw Error(ErrorCode::bad_file, Place{path}, "too long for a transform of 4 x 4 numbers");
    }
    try {
        return geometry::parse_transform(text);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
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

/// RMS distance of the points of a cloud between two poses.
double displacement(const PointCloud& cloud, const RigidTransform& a, const RigidTransform& b) {
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const geometry::Vector3 place = {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)}, p = a(place),
                                q = b(place);
        const double sq = (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) + (p[2] - q[2]) * (p[2] - q[2]);
        if (!std::isfinite(sq)) continue;
        sum += sq;
        ++finite;
    }
    return finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite));
}

/// What is doubtful about a result, in plain words; thrown instead where the user asked for it.
void judge(const IcpResult& found, const Options& options, Result& result) {
    const auto fail = [](const std::string& what) { throw Error(ErrorCode::check_failed, what); };
    std::string trouble;
    if (found.stop == geometry::IcpStop::too_few)
        trouble = fmt::format("too little overlap: {} pairs within the greatest distance", grouped(found.pairs));
    if (found.stop == geometry::IcpStop::iterations)
        trouble = fmt::format("did not converge in {} iterations", found.iterations);
    if (!trouble.empty() && options.require_convergence) fail(trouble);
    if (found.fitness < options.min_fitness)
        fail(fmt::format("fitness {:.3f} is below {:.3f}", found.fitness, options.min_fitness));
    if (!trouble.empty()) result.warnings.push_back(trouble);
    constexpr double kLittle = 0.3;
    if (found.stop != geometry::IcpStop::too_few && found.fitness < kLittle)
        result.warnings.push_back(
            fmt::format("little overlap: {:.0f} % of the source has a neighbour in the target", 100 * found.fitness));
    if (found.undetermined > 0 && found.stop != geometry::IcpStop::too_few)
        result.warnings.push_back(fmt::format(
            "{} of 6 directions of motion are not determined by the points: not moved along them", found.undetermined));
}

void report_truth(const RigidTransform& truth, const RigidTransform& found, const PointCloud& source, Result& result,
                  std::vector<std::pair<std::string, std::string>>& lines) {
    const RigidTransform off = geometry::inverse(truth) * found;
    const double degrees = geometry::rotation_angle(off) * kDegrees, rms = displacement(source, found, truth);
    geometry::Vector3 shift;
    for (int axis = 0; axis < 3; ++axis) shift[axis] = found.translation[axis] - truth.translation[axis];
    result.fields["truth"] = {
        {"rotation_error_degrees", degrees}, {"translation_error", length(shift)}, {"rms_displacement", rms}};
    lines.emplace_back("off the truth",
                       fmt::format("{:.4g} degrees, {:.4g}; points {:.4g} RMS", degrees, length(shift), rms));
}

void report(const IcpResult& found, const IcpOptions& icp, const Options& options, Result& result,
            std::vector<std::pair<std::string, std::string>>& lines) {
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
    for (const geometry::IcpLevel& level : icp.levels)
        fields["levels"].push_back(
            {{"voxel", level.voxel}, {"max_distance", level.max_distance}, {"iterations", level.iterations}});
    fields["transform"] = json_of(t);
    fields["rotation_degrees"] = degrees;
    fields["quaternion_wxyz"] = geometry::to_quaternion(t);
    fields["translation"] = t.translation;
    fields["fitness"] = found.fitness;
    fields["rmse"] = found.rmse;
    fields["pairs"] = found.pairs;
    fields["iterations"] = found.iterations;
    fields["converged"] = found.converged();
    fields["undetermined"] = found.undetermined;
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
    lines.emplace_back(
        "fitness",
        icp.levels.empty() ? "0" : fmt::format("{:.4f} within {:.4g}", found.fitness, icp.levels.back().max_distance));
    lines.emplace_back("rmse", fmt::format("{:.6g}", found.rmse));
    lines.emplace_back("iterations", fmt::format("{}, {}", found.iterations, stop));
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

void save_transform(const RigidTransform& transform, const std::string& path, const Common& common, Result& result) {
    if (path.empty()) return;
    if (!common.dry_run) {
        AtomicFile file(path, common.overwrite_mode());
        const std::string text = geometry::to_text(transform);
        file.write(text.data(), static_cast<int64_t>(text.size()));
        file.commit();
    }
    result.fields["outputs"].push_back({{"path", path}, {"format", "transform"}, {"written", !common.dry_run}});
    result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(path));
}

Result run_register(const Options& options, const Common& common) {
    IcpOptions icp = icp_options(options);
    require_one_stdin({options.source.path, options.target.path, options.init, options.truth});
    // Everything about the outputs is settled before the first byte is read.
    io::Format format{};
    if (!options.output.path.empty()) {
        require_free_stdout(options.output.path, common);
        format = require_output(options.output, common);
    }
    if (!options.transform_to.empty()) require_writable(options.transform_to, common.overwrite_mode());
    require_picture(options.picture, common);
    RigidTransform initial, truth;
    if (!options.init.empty()) initial = load_transform(options.init);
    if (!options.truth.empty()) truth = load_transform(options.truth);

    Result result;
    result.fields["inputs"] = Json::array({options.source.path, options.target.path});
    Mesh source = load_input(options.source, "source", common, result);
    const Mesh target = load_input(options.target, "target", common, result);
    if (parse_device(common.device).type != DeviceType::cpu && common.device != "auto")
        result.warnings.emplace_back("register runs on the CPU");
    if (options.iterations > 0) {
        if (icp.levels.empty() && geometry::rms_radius(target.vertices) > 0)
            icp.levels = geometry::automatic_levels(geometry::rms_radius(target.vertices));
        for (geometry::IcpLevel& level : icp.levels) level.iterations = options.iterations;
    }
    const geometry::IcpTarget prepared =
        about_file(options.target.path, [&] { return geometry::IcpTarget(target.vertices, icp); });
    const IcpResult found =
        about_file(options.source.path, [&] { return geometry::icp(source.vertices, prepared, initial); });
    judge(found, options, result);

    std::vector<std::pair<std::string, std::string>> lines;
    report(found, prepared.options(), options, result, lines);
    if (!options.truth.empty()) report_truth(truth, found.transform, source.vertices, result, lines);
    result.text = format_pairs(lines, 0);
    result.fields["outputs"] = Json::array();
    const PointCloud start = options.picture.empty() ? PointCloud() : geometry::transformed(source.vertices, initial);
    source.vertices = geometry::transformed(source.vertices, found.transform);
    if (!options.output.path.empty())
        save_output(source, options.output, format, fmt::format("{} points", grouped(source.vertices.size())), common,
                    result);
    save_transform(found.transform, options.transform_to, common, result);
    save_picture(
        options.picture, [&] { return before_and_after(target.vertices, start, source.vertices); }, common, result);
    if (!common.table.empty()) {
        const Table table{
            {"source", "target", "method", "rotation (degrees)", "translation", "fitness", "rmse", "iterations",
             "converged"},
            {{options.source.path, options.target.path, options.method, result.fields["rotation_degrees"],
              length(found.transform.translation), found.fitness, found.rmse, found.iterations, found.converged()}}};
        result.text = format_table(table, common.table);
    }
    return result;
}

}  // namespace

Command add_register(Arguments& root, Common& common) {
    auto options = std::make_shared<Options>();
    Arguments& app = root.command("register", "Find the rigid motion that lays one cloud on another");
    Option source = app.option("SOURCE", options->source.path, "The cloud that moves; - is standard input");
    Option target = app.option("TARGET", options->target.path, "The cloud that stays");
    app.option("-o,--output", options->output.path, "The moved source; - is standard output");
    app.option("--method", options->method, "icp: from a start that is roughly right").show_default();
    app.option("--metric", options->metric, "Distances to the target's points, or to the planes through them")
        .one_of({"point", "plane"})
        .show_default()
        .text("point|plane");
    std::vector<std::string> kernels;
    for (const KernelName& kernel : kKernels) kernels.emplace_back(kernel.name);
    app.option("--kernel", options->kernel, "Doubt of far pairs: none, huber, tukey, cauchy, geman-mcclure")
        .one_of(kernels)
        .show_default()
        .text("NAME");
    app.option("--kernel-scale", options->kernel_scale, "Residual at which doubt begins; auto: by the median")
        .show_default()
        .text("auto|LENGTH");
    app.option("--scale", options->scale, "Radius that cells and distances fit; auto: the target's")
        .show_default()
        .text("auto|LENGTH");
    app.option("--max-distance", options->max_distance, "Farthest pairs; several: one for each level, coarse to fine");
    app.option("--voxel", options->voxel, "Edge of the cells that thin both clouds, one for each --max-distance");
    app.option("--iterations", options->iterations, "Most steps of a level; 0: 30, at the last 50").show_default();
    app.option("--trim", options->trim, "Share of the pairs that counts, nearest first").show_default();
    app.option("--init", options->init, "Start from this 4 x 4 matrix (text)");
    app.option("--transform-to", options->transform_to, "Write the 4 x 4 matrix here");
    app.option("--truth", options->truth, "Compare with this 4 x 4 matrix");
    app.flag("--require-convergence", options->require_convergence, "Fail, and write nothing, without convergence");
    app.option("--min-fitness", options->min_fitness, "Fail, and write nothing, when fewer points have a pair")
        .show_default();
    app.option("--picture", options->picture, "Draw before and after into this .png");
    app.option("--from", options->source.from, "Format of the inputs, when name and content do not tell");
    add_output_format(app, options->output);
    app.footer(
        "Example:\n  stipple register scan2.ply scan1.ply -o aligned.ply --transform-to T.txt --picture both.png\n"
        "  stipple register a.las b.las --max-distance 5 1 --voxel 1 0.2 --require-convergence");
    return {&app,
            [options, &common] {
                Options resolved = *options;
                resolved.target.from = resolved.source.from;
                return run_register(resolved, common);
            },
            {source, target}};
}

}  // namespace stipple::cli
