#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/registration/options.h"
#include "stipple/tasks/scan_poses.h"

namespace stipple::cli {
namespace {

using geometry::IcpResult;
using geometry::RigidTransform;

constexpr double kDegrees = 180 / M_PI;

std::string confidence_text(const tasks::Registration& registration) {
    const tasks::PoseTrust& trust = registration.trust;
    // Rounded down: what is shown as 0.95 is good.
    const std::string text = fmt::format("{:.2f}, good from {:.2f}, failed below {:.2f}",
                                         std::floor(100 * trust.confidence) / 100, geometry::kGood, geometry::kWritten);
    if (registration.method != tasks::RegisterMethod::global) return text + "; no other pose was tried";
    if (trust.evidence.other == 0) return text + "; no other pose fits";
    return text +
           fmt::format("; the next of {} poses is {:.0f} % as likely", registration.poses, 100 * trust.evidence.other);
}

/// points  of source and target, before they were thinned
void report(const tasks::Registration& registration, const int64_t (&points)[2], Result& result,
            std::vector<std::pair<std::string, std::string>>& lines) {
    const IcpResult& found = registration.found;
    const std::vector<geometry::IcpLevel>& levels = registration.levels;
    const RigidTransform& t = found.transform;
    const double degrees = geometry::rotation_angle(t) * kDegrees, shift = length(t.translation);
    const char* stop = found.converged()                          ? "converged"
                       : found.stop == geometry::IcpStop::too_few ? "too few pairs"
                                                                  : "not converged";
    const tasks::PoseTrust& trust = registration.trust;
    result.fields.update(to_json(tasks::registration_fields(), &registration));
    lines.emplace_back("method", tasks::to_string(registration.method) +
                                     (registration.story.empty() ? std::string() : ": " + registration.story));
    lines.emplace_back("rotation", fmt::format("{:.6g} degrees", degrees));
    lines.emplace_back("translation", fmt::format("{:.6g} ({:.6g}, {:.6g}, {:.6g})", shift, t.translation[0],
                                                  t.translation[1], t.translation[2]));
    lines.emplace_back("fitness", levels.empty()
                                      ? "0"
                                      : fmt::format("{:.4f} within {:.4g}", found.fitness, levels.back().max_distance));
    lines.emplace_back("rmse", found.pairs > 0 ? fmt::format("{:.6g}", found.rmse) : "none: no pairs");
    lines.emplace_back("overlap",
                       fmt::format("{:.0f} % of the scan that shares more; {:.0f} % of what is near the other agrees",
                                   100 * trust.evidence.overlap(), 100 * trust.evidence.agreement()));
    lines.emplace_back("confidence", confidence_text(registration));
    const bool is_thinned = found.evidence.source_points < points[0] || found.evidence.target_points < points[1];
    if (!levels.empty() && levels.back().voxel > 0 && found.evidence.source_points > 0 && is_thinned)
        lines.emplace_back("thinned", fmt::format("last steps on {} and {} points, one for each cell of {:.3g}",
                                                  grouped(found.evidence.source_points),
                                                  grouped(found.evidence.target_points), levels.back().voxel));
    lines.emplace_back("iterations", fmt::format("{}, {}", found.iterations, stop));
    lines.emplace_back("verdict", geometry::to_string(registration.verdict.state));
}

Result run_register(const RegisterCommand& options, const Common& common) {
    require_clouds(options);
    STIPPLE_REQUIRE(options.more.empty(), "{} clouds: two are registered, or several with --pose-graph",
                    2 + options.more.size());
    check_fields(tasks::register_fields(), &options.how, as_option);
    STIPPLE_REQUIRE(options.how.method != tasks::RegisterMethod::learned || options.init.empty(),
                    "--init is a start, and --method learned finds one: give one");
    require_one_stdin({options.source.path, options.target.path, options.init, options.truth});
    // Everything about the outputs is settled before the first byte is read.
    io::Format format{};
    if (!options.output.path.empty()) {
        require_free_stdout(options.output.path, common);
        format = require_output(options.output, common);
    }
    if (!options.transform_to.empty()) require_writable(options.transform_to, common.overwrite_mode());
    require_picture(options.picture, common);
    tasks::RegisterOptions wanted = options.how;
    if (!options.init.empty()) wanted.initial = tasks::load_transform(options.init);
    wanted = tasks::register_options(std::move(wanted), common.device);
    RigidTransform truth;
    if (!options.truth.empty())
        truth = tasks::load_motion_between(options.truth, options.source.path, options.target.path);

    Result result;
    result.fields["inputs"] = Json::array({options.source.path, options.target.path});
    Mesh source = load_scan(options.source, common, result, result.fields["source"]);
    const Mesh target = load_scan(options.target, common, result, result.fields["target"]);
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
    report(registration, {source.vertices.size(), target.vertices.size()}, result, lines);
    if (!options.truth.empty()) {
        const tasks::PoseError error = tasks::pose_error(found.transform, truth, source.vertices);
        result.fields["truth"] = to_json(tasks::pose_error_fields(), &error);
        lines.emplace_back("off the truth", text_of(error));
    }
    result.text = format_pairs(lines, 0);
    result.fields["outputs"] = Json::array();
    const PointCloud start = options.picture.empty()
                                 ? PointCloud()
                                 : geometry::transformed(source.vertices, wanted.initial.value_or(RigidTransform{}));
    source.vertices = geometry::transformed(source.vertices, found.transform);
    if (!options.output.path.empty())
        save_output(source, options.output, format, fmt::format("{} points", grouped(source.vertices.size())), common,
                    result);
    save_text(options.transform_to, geometry::to_text(found.transform), "transform", common, result);
    save_picture(
        options.picture,
        [&] {
            return draw_registration({&target.vertices, &start}, {&target.vertices, &source.vertices},
                                     "source orange, target blue");
        },
        common, result);
    if (!common.table.empty()) {
        const Table table{
            {"source", "target", "method", "rotation (degrees)", "translation", "fitness", "rmse", "overlap",
             "confidence", "iterations", "converged", "verdict"},
            {{options.source.path, options.target.path, result.fields["method"], result.fields["rotation_degrees"],
              length(found.transform.translation), found.fitness, result.fields["rmse"], result.fields["overlap"],
              result.fields["confidence"], found.iterations, found.converged(), result.fields["verdict"]}}};
        result.text = format_table(table, common.table);
    }
    return result;
}

}  // namespace

Command add_register(Arguments& root, Common& common) {
    auto command = std::make_shared<RegisterCommand>();
    Arguments& app = root.command("register", "Find the rigid motion that lays one cloud on another");
    Option source = app.option("SOURCE", command->source.path, "The cloud that moves; - is standard input");
    app.option("TARGET", command->target.path, "The cloud that stays");
    app.option("MORE", command->more, "More scans, for --pose-graph");
    app.option("-o,--output", command->output.path, "The moved source; - is standard output");
    command->how.method = tasks::RegisterMethod::automatic;
    app.add(tasks::register_fields(), &command->how);
    app.flag("--pose-graph", command->pose_graph,
             "All scans into the frame of the first; -o is a folder/ for them, or one file");
    app.flag("--sequence", command->sequence,
             "SOURCE is a folder of sweeps in the order of their names: LiDAR odometry; -o is for poses as KITTI's");
    app.option("--map", command->map, "sequence: write the sweeps in one frame, thinned");
    app.option("--map-voxel", command->map_voxel, "sequence: edge of the cells that thin the map; 0: by the range");
    app.option("--max-range", command->max_range,
               "sequence: points farther from the sensor do not count; 0: by the first sweep");
    app.option("--calibration", command->calibration,
               "sequence: scanner to camera (KITTI's calib.txt), where poses are those of the camera")
        .text("FILE");
    app.option("--min-confidence", command->min_confidence, "Of a pair that counts in the pose graph");
    app.option("--init", command->init, "Start from this 4 x 4 matrix (text)");
    app.option("--transform-to", command->transform_to, "Write the 4 x 4 matrix here");
    app.option("--truth", command->truth,
               "Compare with this 4 x 4 matrix, with poses of scans (.conf), or of sweeps (KITTI)");
    app.flag("--keep-failed", command->keep_failed, "Write the outputs of a failed registration too, and warn");
    app.option("--picture", command->picture, "Draw before and after into this .png");
    app.option("--from", command->source.from, "Format of the inputs, when name and content do not tell");
    add_output_format(app, command->output);
    app.footer(
        "Example:\n  stipple register scan2.ply scan1.ply -o aligned.ply --transform-to T.txt --picture both.png\n"
        "  stipple register a.las b.las --max-distance 5 1 --voxel 1 0.2 --require-convergence\n"
        "  stipple register scans/*.ply --pose-graph -o merged.ply\n"
        "  stipple register sweeps/ --sequence -o poses.txt --map map.las");
    return {&app,
            [command, &common] {
                command->target.from = command->source.from;
                if (command->sequence) return run_register_sequence(*command, common);
                return command->pose_graph ? run_register_scans(*command, common) : run_register(*command, common);
            },
            {source}};
}

}  // namespace stipple::cli
