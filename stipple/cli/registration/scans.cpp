// stipple register --pose-graph: several scans into one frame.

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/registration/options.h"
#include "stipple/geometry/merge_clouds.h"
#include "stipple/tasks/register_scans.h"
#include "stipple/tasks/scan_poses.h"

namespace stipple::cli {
namespace {

constexpr double kToDegrees = 180 / M_PI;

std::string file_name(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool is_folder_output(const std::string& path) {
    return !path.empty() && (path.back() == '/' || is_folder(path));
}

/// The file of a scan in the folder of outputs: by its own name, with the extension of --format where that is given.
OutputFile scan_output(const OutputFile& folder, const std::string& input) {
    OutputFile file = folder;
    std::string name = file_name(input);
    if (!folder.format.empty())
        name = stem_of(input) + "." + std::string(io::info_of(io::format_by_name(folder.format)).extensions[0]);
    file.path = folder.path + (folder.path.back() == '/' ? "" : "/") + name;
    return file;
}

/// Everything about the outputs, before the first byte is read.
void require_outputs(const RegisterCommand& options, const std::vector<std::string>& inputs, const Common& common) {
    require_clouds(options);
    STIPPLE_REQUIRE(options.init.empty(), "--init is for two clouds: --pose-graph searches");
    STIPPLE_REQUIRE(
        options.how.method != tasks::RegisterMethod::learned && options.how.model.empty() && options.how.sampled == 0,
        "--method learned is for two clouds of one whole shape: --pose-graph searches");
    STIPPLE_REQUIRE(options.min_confidence >= 0 && options.min_confidence <= 1,
                    "--min-confidence must be 0 to 1, got {}", options.min_confidence);
    std::set<std::string> names;
    for (const std::string& input : inputs) {
        STIPPLE_REQUIRE(input != "-", "--pose-graph takes files, not standard input");
        STIPPLE_REQUIRE(names.insert(file_name(input)).second, "two scans have the name {}", file_name(input));
    }
    if (is_folder_output(options.output.path)) {
        names.clear();
        for (const std::string& input : inputs) {
            const OutputFile file = scan_output(options.output, input);
            STIPPLE_REQUIRE(names.insert(file.path).second, "two scans would be written as {}", file.path);
            if (is_folder(options.output.path)) require_output(file, common);
        }
    } else if (!options.output.path.empty()) {
        require_free_stdout(options.output.path, common);
        require_output(options.output, common, "scan");
    }
    if (!options.transform_to.empty()) require_writable(options.transform_to, common.overwrite_mode());
    require_picture(options.picture, common);
}

/// The placed scans as one cloud with an attribute that tells the scan, by its place on the command line.
void save_merged(const std::vector<Mesh>& scans, const std::vector<uint8_t>& is_placed, const OutputFile& file,
                 const Common& common, Result& result) {
    CloudOutput output(file, common, "scan");
    std::vector<geometry::CloudSchema> schemas(scans.size());
    for (size_t i = 0; i < scans.size(); ++i) schemas[i].add(scans[i].vertices);
    const geometry::MergePlan plan = geometry::plan_merge(schemas, geometry::MissingAttributes::drop);
    for (size_t i = 0; i < scans.size(); ++i) {
        if (!is_placed[i]) continue;
        Mesh part;
        part.vertices = geometry::fitted(scans[i].vertices, plan, schemas[i].color_maximum());
        part.triangles = scans[i].triangles.clone();
        std::erase_if(part.vertices.attributes, [](const Attribute& a) { return a.name() == "scan"; });
        Attribute ids("scan", DType::u16, part.vertices.size(), 1);
        std::fill_n(ids.as<uint16_t>().data(), part.vertices.size(), static_cast<uint16_t>(i));
        part.vertices.attributes.push_back(std::move(ids));
        output.add(std::move(part));
    }
    output.finish(fmt::format("{} points", grouped(output.points())), "no scan is placed", result);
}

void save_scans(const std::vector<Mesh>& scans, const std::vector<std::string>& inputs,
                const std::vector<uint8_t>& is_placed, const OutputFile& folder, const Common& common, Result& result) {
    if (!common.dry_run && !is_folder(folder.path) && ::mkdir(folder.path.c_str(), 0777) != 0)
        throw Error(ErrorCode::cannot_write, Place{folder.path},
                    fmt::format("cannot make the folder: {}", std::strerror(errno)));
    for (size_t i = 0; i < scans.size(); ++i) {
        if (!is_placed[i]) continue;
        const OutputFile file = scan_output(folder, inputs[i]);
        if (common.dry_run && !is_folder(folder.path)) continue;
        save_output(scans[i], file, require_output(file, common),
                    fmt::format("{} points", grouped(scans[i].vertices.size())), common, result);
    }
}

/// Poses, errors against known ones, and what became of the pairs.
void report_scans(const tasks::RegisteredScans& found, const std::vector<std::string>& inputs,
                  const std::vector<Mesh>& scans, const std::vector<tasks::ScanPose>& truth, const Common& common,
                  Result& result) {
    const bool has_truth = !truth.empty();
    Table poses{{"scan", "placed", "rotation (degrees)", "translation"}, {}};
    if (has_truth)
        for (const char* column : {"off (degrees)", "off (doubled)", "off (translation)", "off (points, RMS)"})
            poses.columns.emplace_back(column);
    Json& fields = result.fields;
    fields["scans"] = Json::array();
    const tasks::ScanPose* first_truth = nullptr;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const geometry::RigidTransform& pose = found.poses[i];
        const double degrees = geometry::rotation_angle(pose) * kToDegrees;
        const bool is_placed = found.is_placed[i];
        Json scan = {{"path", inputs[i]}, {"points", scans[i].vertices.size()}, {"placed", is_placed}};
        poses.rows.push_back({file_name(inputs[i]), is_placed});
        auto& row = poses.rows.back();
        if (is_placed) {
            scan["transform"] = tasks::to_json(pose);
            row.insert(row.end(), {degrees, length(pose.translation)});
        } else {
            row.insert(row.end(), {nullptr, nullptr});
        }
        const tasks::ScanPose* known = tasks::find_pose(truth, inputs[i]);
        if (is_placed && !first_truth) first_truth = known;
        if (has_truth && is_placed && known && first_truth) {
            const tasks::PoseError error =
                tasks::pose_error(pose, geometry::inverse(first_truth->pose) * known->pose, scans[i].vertices);
            scan["truth"] = to_json(tasks::pose_error_fields(), &error);
            row.insert(row.end(), {error.degrees, error.doubled, error.translation, error.rms});
        } else if (has_truth) {
            row.insert(row.end(), {nullptr, nullptr, nullptr, nullptr});
        }
        fields["scans"].push_back(scan);
    }
    fields["pairs"] = Json::array();
    int64_t edges = 0, dropped = 0;
    std::string dropped_names;
    for (const tasks::ScanPair& pair : found.pairs) {
        const tasks::PoseTrust& trust = pair.registration.trust;
        fields["pairs"].push_back({{"source", inputs[pair.source]},
                                   {"target", inputs[pair.target]},
                                   {"method", tasks::to_string(pair.registration.method)},
                                   {"confidence", trust.confidence},
                                   {"overlap", trust.evidence.overlap()},
                                   {"rmse", pair.registration.found.rmse},
                                   {"predicted", pair.is_predicted},
                                   {"edge", pair.is_edge},
                                   {"dropped", pair.is_dropped},
                                   {"residual", pair.is_edge ? Json(pair.residual) : Json(nullptr)}});
        edges += pair.is_edge;
        dropped += pair.is_dropped;
        if (pair.is_dropped)
            dropped_names += fmt::format("dropped  {} on {}: off by {:.3g} RMS (confidence {:.2f})\n",
                                         file_name(inputs[pair.source]), file_name(inputs[pair.target]), pair.residual,
                                         trust.confidence);
    }
    fields["pairs_tried"] = found.pairs.size();
    fields["pairs_possible"] = found.all_pairs;
    fields["tolerance"] = found.tolerance;
    fields["rms"] = found.rms;
    fields["verdict"] = geometry::to_string(found.verdict.state);
    fields["reasons"] = found.verdict.reasons;
    result.text = format_table(poses, common.table);
    if (common.table.empty())
        result.text += dropped_names + fmt::format(
                                           "pairs    {} of {} tried: {} registered with confidence, {} of them "
                                           "dropped; the others agree to {:.3g} RMS\n",
                                           found.pairs.size(), found.all_pairs, edges, dropped, found.rms);
}

}  // namespace

Result run_register_scans(const RegisterCommand& options, const Common& common) {
    std::vector<std::string> inputs = {options.source.path, options.target.path};
    inputs.insert(inputs.end(), options.more.begin(), options.more.end());
    require_outputs(options, inputs, common);
    tasks::ScansOptions wanted;
    wanted.pairs = tasks::register_options(options.how, common.device);
    wanted.pairs.learned = {};  // a network looks at single shapes
    wanted.min_confidence = options.min_confidence;
    std::vector<tasks::ScanPose> truth;
    if (!options.truth.empty()) truth = tasks::load_scan_poses(options.truth);

    Result result;
    result.fields["inputs"] = inputs;
    std::vector<Mesh> scans;
    std::vector<const PointCloud*> clouds;
    scans.reserve(inputs.size());
    for (const std::string& input : inputs) {
        Json unused;
        scans.push_back(load_scan({input, options.source.from}, common, result, unused));
        clouds.push_back(&scans.back().vertices);
    }
    const auto count = static_cast<int64_t>(inputs.size());
    // How many pairs of many scans are worth a registration shows on the way.
    const int64_t pairs = count <= wanted.most_scans ? count * (count - 1) / 2 : 0;
    Progress progress("register", pairs, progress_mode(common), "pairs");
    const tasks::RegisteredScans found = tasks::register_scans(clouds, wanted, [&] { progress.add(); });
    if (found.verdict.state == geometry::RegistrationState::failed && !options.keep_failed)
        throw Error(ErrorCode::check_failed, found.verdict.text(), "--min-confidence lets less sure pairs count");
    result.warnings.insert(result.warnings.end(), found.verdict.reasons.begin(), found.verdict.reasons.end());
    report_scans(found, inputs, scans, truth, common, result);

    result.fields["outputs"] = Json::array();
    std::vector<PointCloud> before;
    std::vector<tasks::ScanPose> placed;
    for (size_t i = 0; i < scans.size(); ++i) {
        if (!options.picture.empty()) before.push_back(scans[i].vertices.clone());
        if (!found.is_placed[i]) continue;
        scans[i].vertices = geometry::transformed(scans[i].vertices, found.poses[i]);
        placed.push_back({file_name(inputs[i]), found.poses[i]});
    }
    if (is_folder_output(options.output.path))
        save_scans(scans, inputs, found.is_placed, options.output, common, result);
    else if (!options.output.path.empty())
        save_merged(scans, found.is_placed, options.output, common, result);
    save_text(options.transform_to, tasks::to_text(placed), "transform", common, result);
    save_picture(
        options.picture,
        [&] {
            std::vector<const PointCloud*> first, second;
            for (size_t i = 0; i < scans.size(); ++i) {
                first.push_back(&before[i]);
                if (found.is_placed[i]) second.push_back(&scans[i].vertices);
            }
            return draw_registration(first, second, "each scan in its colour");
        },
        common, result);
    return result;
}

}  // namespace stipple::cli
