// stipple register --sequence: the sweeps of a drive, by LiDAR odometry.

#include <algorithm>
#include <cmath>

#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/registration/options.h"
#include "stipple/tasks/register_sequence.h"
#include "stipple/tasks/sweep_poses.h"

namespace stipple::cli {
namespace {

using geometry::RigidTransform;

constexpr size_t kMostWarnings = 10;

void require_sequence(const RegisterCommand& options, const Common& common) {
    STIPPLE_REQUIRE(!options.pose_graph, "--sequence and --pose-graph exclude each other");
    STIPPLE_REQUIRE(options.init.empty() && options.transform_to.empty(),
                    "--init and --transform-to are for two clouds: with --sequence -o has all poses");
    STIPPLE_REQUIRE(
        options.how.method == tasks::RegisterMethod::automatic && options.how.model.empty() && options.how.sampled == 0,
        "--sequence has a method of its own: --method, --model and --sampled are not for it");
    STIPPLE_REQUIRE(options.how.max_distances.empty() && options.how.voxels.empty() && options.how.scale == 0,
                    "--sequence chooses distances itself: --max-range tells how far the sensor sees");
    STIPPLE_REQUIRE(options.picture.empty(), "--picture is not for --sequence: draw the map with stipple picture");
    STIPPLE_REQUIRE(options.map_voxel >= 0 && std::isfinite(options.map_voxel), "--map-voxel must be from 0, got {}",
                    options.map_voxel);
    STIPPLE_REQUIRE(options.max_range >= 0 && std::isfinite(options.max_range), "--max-range must be from 0, got {}",
                    options.max_range);
    STIPPLE_REQUIRE(options.map_voxel == 0 || !options.map.empty(), "--map-voxel needs --map");
    STIPPLE_REQUIRE(options.map != "-" && options.output.path != "-", "--sequence writes files, not standard output");
    STIPPLE_REQUIRE(options.map.empty() || options.map != options.output.path, "-o and --map are the same file: {}",
                    options.map);
    if (!options.output.path.empty()) require_writable(options.output.path, common.overwrite_mode());
}

/// What a LAS file needs from its first points on, so that the others can go into it as they come: the facts of one
/// with this grid, which is fine enough for cells of `voxel`.
FileFacts facts_for_las(const PointCloud& points, double voxel) {
    io::WriteOptions writing;
    const double step = std::pow(10, std::floor(std::log10(voxel / 100)));
    writing.scale = {step, step, step};
    writing.offset = {0, 0, 0};
    Mesh mesh;
    mesh.vertices = points.clone();
    mesh.triangles = Array<int32_t, 2>({0, 3});
    io::Warnings unused;
    MemorySink sink;
    io::write(mesh, sink, io::Format::las, writing, unused);
    io::MemorySource source(sink.bytes());
    io::ByteReader reader(source);
    return io::info_of(io::Format::las).parse(reader, {}, unused).vertices.facts;
}

/// The map's file, which gets the points of a sweep at a time.
class MapFile {
public:
    MapFile(const RegisterCommand& options, const Common& common) : output_({options.map, ""}, common) {}

    void add(PointCloud points, double voxel) {
        if (output_.format() == io::Format::las) {
            if (!facts_) facts_ = facts_for_las(points, voxel);
            points.facts = *facts_;
        }
        Mesh piece;
        piece.vertices = std::move(points);
        piece.triangles = Array<int32_t, 2>({0, 3});
        output_.add(std::move(piece));
    }
    void finish(Result& result) {
        output_.finish(fmt::format("{} points of the map", grouped(output_.points())), "no sweep has points", result);
    }
    int64_t points() const { return output_.points(); }

private:
    CloudOutput output_;
    std::optional<FileFacts> facts_;
};

Table table_of(const tasks::Drift& drift) {
    Table table{{"segments", "number", "translation (%)", "rotation (degrees in 100)"}, {}};
    const auto add = [&](const Json& length, const tasks::DriftRow& row) {
        table.rows.push_back({length, row.segments, 100 * row.translation, row.degrees});
    };
    for (const tasks::DriftRow& row : drift.rows) add(row.length, row);
    add("all", drift.all);
    return table;
}

Json drift_json(const tasks::Drift& drift) {
    Json fields = {{"path", drift.path},
                   {"kitti", drift.is_kitti},
                   {"segments", Json::array()},
                   {"translation_percent", 100 * drift.all.translation},
                   {"degrees_per_100", drift.all.degrees},
                   {"end_translation", drift.end_translation},
                   {"end_degrees", drift.end_degrees}};
    for (const tasks::DriftRow& row : drift.rows)
        fields["segments"].push_back({{"length", row.length},
                                      {"number", row.segments},
                                      {"translation_percent", 100 * row.translation},
                                      {"degrees_per_100", row.degrees}});
    return fields;
}

double path_of(const std::vector<RigidTransform>& poses) {
    double path = 0;
    for (size_t i = 1; i < poses.size(); ++i)
        path += length({poses[i].translation[0] - poses[i - 1].translation[0],
                        poses[i].translation[1] - poses[i - 1].translation[1],
                        poses[i].translation[2] - poses[i - 1].translation[2]});
    return path;
}

/// Of many warnings the first, and how many more there are.
void warn(const std::vector<std::string>& warnings, std::string_view what, Result& result) {
    const size_t shown = std::min(warnings.size(), kMostWarnings);
    result.warnings.insert(result.warnings.end(), warnings.begin(), warnings.begin() + static_cast<int64_t>(shown));
    if (warnings.size() > shown)
        result.warnings.push_back(fmt::format("{} more {}, see --json", grouped(warnings.size() - shown), what));
}

Table report(const tasks::RegisteredSequence& found, const std::vector<RigidTransform>& poses,
             const std::vector<data::CloudEntry>& entries, Result& result,
             std::vector<std::pair<std::string, std::string>>& lines) {
    Table table{{"sweep", "x", "y", "z", "points", "on the map (%)", "off the guess", "iterations", "trouble"}, {}};
    Json& fields = result.fields;
    fields["sweeps"] = Json::array();
    int64_t iterations = 0;
    for (size_t i = 0; i < found.sweeps.size(); ++i) {
        const geometry::SweepPose& sweep = found.sweeps[i];
        const double on =
            sweep.used > 0 && i > 0 ? static_cast<double>(sweep.close) / static_cast<double>(sweep.used) : 0;
        const geometry::Vector3& at = poses[i].translation;
        iterations += sweep.iterations;
        fields["sweeps"].push_back({{"path", entries[i].name()},
                                    {"transform", tasks::to_json(poses[i])},
                                    {"points", sweep.points},
                                    {"used", sweep.used},
                                    {"pairs", sweep.pairs},
                                    {"on_map", i > 0 ? Json(on) : Json(nullptr)},
                                    {"reach", sweep.reach},
                                    {"rmse", sweep.rmse},
                                    {"deviation", sweep.deviation},
                                    {"iterations", sweep.iterations},
                                    {"trouble", geometry::to_string(sweep.trouble)}});
        table.rows.push_back({entries[i].name(), at[0], at[1], at[2], sweep.points,
                              i > 0 ? Json(100 * on) : Json(nullptr), sweep.deviation, sweep.iterations,
                              geometry::to_string(sweep.trouble)});
    }
    fields["points"] = found.points;
    fields["non_finite"] = found.non_finite;
    fields["timed"] = found.timed;
    fields["max_range"] = found.odometry.max_range;
    fields["min_range"] = found.odometry.min_range;
    fields["voxel"] = found.odometry.voxel;
    if (found.map_voxel > 0) fields["map_voxel"] = found.map_voxel;
    fields["length"] = path_of(poses);
    fields["verdict"] = geometry::to_string(found.verdict.state);
    fields["reasons"] = found.verdict.reasons;
    fields["unread"] = found.unread;
    const auto n = static_cast<int64_t>(found.sweeps.size());
    lines.emplace_back("sweeps",
                       fmt::format("{} of {} points; {}", grouped(n), grouped(found.points / std::max<int64_t>(n, 1)),
                                   found.timed == 0   ? "without times: as they are"
                                   : found.timed == n ? "with times: freed of the sensor's motion"
                                                      : fmt::format("{} with times", grouped(found.timed))));
    lines.emplace_back("ranges", fmt::format("{:.3g} to {:.4g}, cells of {:.3g}", found.odometry.min_range,
                                             found.odometry.max_range, found.odometry.voxel));
    lines.emplace_back("length", fmt::format("{:.6g}", path_of(poses)));
    lines.emplace_back("iterations",
                       fmt::format("{:.1f} a sweep",
                                   static_cast<double>(iterations) / static_cast<double>(std::max<int64_t>(n - 1, 1))));
    lines.emplace_back("verdict", geometry::to_string(found.verdict.state));
    return table;
}

}  // namespace

Result run_register_sequence(const RegisterCommand& options, const Common& common) {
    require_sequence(options, common);
    std::vector<std::string> inputs = {options.source.path};
    if (!options.target.path.empty()) inputs.push_back(options.target.path);
    inputs.insert(inputs.end(), options.more.begin(), options.more.end());
    for (const std::string& input : inputs) STIPPLE_REQUIRE(input != "-", "--sequence takes files, not standard input");
    std::optional<MapFile> map;
    if (!options.map.empty()) map.emplace(options, common);
    std::vector<RigidTransform> truth;
    if (!options.truth.empty()) truth = tasks::load_kitti_poses(options.truth);
    RigidTransform camera;
    if (!options.calibration.empty()) camera = tasks::load_kitti_calibration(options.calibration);

    Result result;
    result.fields["inputs"] = inputs;
    const std::vector<data::CloudEntry> entries = data::list_clouds(inputs);
    STIPPLE_REQUIRE(entries.size() >= 2, "{} holds one sweep: --sequence registers two or more", inputs[0]);
    if (!truth.empty() && truth.size() != entries.size())
        throw Error(ErrorCode::bad_argument, Place{options.truth},
                    fmt::format("holds {} poses for {} sweeps", truth.size(), entries.size()));

    tasks::SequenceOptions wanted;
    wanted.odometry.max_range = options.max_range;
    wanted.map_voxel = options.map_voxel;
    wanted.keep_going = options.keep_failed;
    Progress progress("register", static_cast<int64_t>(entries.size()), progress_mode(common), "sweeps");
    io::Warnings read_warnings;
    tasks::SequenceFiles files;
    files.name = [&](size_t i) { return entries[i].name(); };
    files.load = [&](size_t i) {
        return std::move(data::load_entry(entries[i], {options.source.from, {}}, read_warnings).vertices);
    };
    if (map) files.map = [&](PointCloud points, double voxel) { map->add(std::move(points), voxel); };
    files.done = [&] { progress.add(); };
    const tasks::RegisteredSequence found = tasks::register_sequence(entries.size(), wanted, files);
    warn(read_warnings, "warnings about sweeps", result);
    warn(found.unread, "sweeps could not be read", result);
    if (found.non_finite > 0)
        result.warnings.push_back(fmt::format("{} of {} points not finite, not registered", grouped(found.non_finite),
                                              grouped(found.points)));
    if (found.verdict.state == geometry::RegistrationState::failed && !options.keep_failed)
        throw Error(ErrorCode::check_failed, found.verdict.reasons[0],
                    "--keep-failed goes on and writes poses that mean nothing from there");
    warn(found.verdict.reasons, "sweeps with doubts", result);

    std::vector<RigidTransform> poses = found.poses();
    if (!options.calibration.empty())
        for (RigidTransform& pose : poses) pose = camera * pose * geometry::inverse(camera);
    std::vector<std::pair<std::string, std::string>> lines;
    Table table = report(found, poses, entries, result, lines);
    bool has_segments = false;
    if (!truth.empty()) {
        const tasks::Drift drift = tasks::pose_drift(poses, truth);
        result.fields["truth"] = drift_json(drift);
        table = table_of(drift);
        const std::string mean = drift.rows.empty() ? "too few steps for segments"
                                                    : fmt::format("{:.3f} %, {:.4f} degrees in 100",
                                                                  100 * drift.all.translation, drift.all.degrees);
        lines.emplace_back("drift", fmt::format("{}; the end is off by {:.4g} and {:.3g} degrees after {:.6g}", mean,
                                                drift.end_translation, drift.end_degrees, drift.path));
        has_segments = !drift.rows.empty();
    }
    result.text = !common.table.empty() ? format_table(table, common.table)
                  : !has_segments       ? format_pairs(lines, 0)
                                        : format_pairs(lines, 0) + format_table(table, "");
    result.fields["outputs"] = Json::array();
    if (!options.output.path.empty())
        save_text(options.output.path, tasks::to_kitti_poses(poses), "poses", common, result);
    if (map) map->finish(result);
    return result;
}

}  // namespace stipple::cli
