#include "stipple/cli/commands.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/metrics/report.h"
#include "stipple/core/interrupt.h"

namespace stipple::cli {
namespace {

constexpr size_t kMaxPanels = 24;

struct MetricsCommand {
    std::string prediction, truth, mesh, errors, picture, shard, up = "z";
    tasks::ScoreOptions how;
    bool list = false;
};

tasks::ScorePlan plan_of(const MetricsCommand& command, const Common& common) {
    for (const auto& [path, name] : {std::pair(&command.prediction, "PRED"), std::pair(&command.truth, "TRUTH")})
        if (path->empty())
            throw Error(ErrorCode::bad_argument, fmt::format("{} is missing: which file or folder?", name),
                        "see: stipple metrics --help");
    require_one_stdin({command.prediction, command.truth, command.mesh});
    tasks::ScorePlan plan = tasks::plan_scores(command.how, !command.mesh.empty());
    plan.evaluate.errors = !command.errors.empty() || !command.picture.empty();
    plan.evaluate.seed = common.seed;
    plan.evaluate.device = parse_device(common.device);
    return plan;
}

/// Where the errors of each pair go: nowhere, into the file named, or into one a shape inside the folder named.
std::vector<OutputFile> error_outputs(const std::string& errors, const std::vector<data::ShapePair>& pairs) {
    std::vector<OutputFile> outputs;
    if (errors.empty()) return outputs;
    const bool folder = is_folder(errors);
    STIPPLE_REQUIRE(folder || pairs.size() == 1, "--errors-to {}: {} shapes need a folder that exists", errors,
                    pairs.size());
    const std::string separator = errors.back() == '/' ? "" : "/";
    for (const data::ShapePair& pair : pairs)
        outputs.push_back({folder ? errors + separator + pair.shape + ".ply" : errors, ""});
    return outputs;
}

/// `with_faces` receives the path when the file is a mesh.
PointCloud load_cloud(const std::string& path, bool drops_nonfinite, const Common& common, Result& result,
                      std::vector<std::string>& with_faces) {
    Mesh mesh = load_with_progress(path, "", -1, common, result.warnings);
    if (mesh.vertices.size() == 0) throw Error(ErrorCode::bad_file, Place{path}, "has no points");
    if (mesh.faces() > 0) with_faces.push_back(path);
    const int64_t finite = bounds_of(mesh.vertices).finite, size = mesh.vertices.size();
    if (finite == 0) throw Error(ErrorCode::bad_file, Place{path}, "has no finite points");
    if (finite < size && !drops_nonfinite)
        throw Error(ErrorCode::bad_file, Place{path},
                    fmt::format("{} of {} points are not finite", grouped(size - finite), grouped(size)),
                    "--drop-nonfinite leaves them out");
    return std::move(mesh.vertices);
}

Image draw_errors(const std::vector<Mesh>& clouds, const std::vector<data::ShapePair>& pairs, const std::string& up) {
    std::vector<const PointCloud*> shapes;
    std::vector<std::string> captions;
    for (size_t i = 0; i < clouds.size(); ++i) {
        shapes.push_back(&clouds[i].vertices);
        captions.push_back(pairs[i].shape);
    }
    if (pairs[0].mesh.empty())
        return draw_values(shapes, captions, {"error_to_truth", "distance to the truth", false, up});
    return draw_values(shapes, captions, {"error_to_mesh", "distance to the mesh", false, up});
}

void warn(const tasks::ScoreReport& report, const std::vector<std::string>& with_faces, Result& result) {
    if (!with_faces.empty())
        result.warnings.push_back(fmt::format(
            "{}{}: only {} vertices are compared", with_faces[0],
            with_faces.size() == 1 ? " has faces" : fmt::format(" and {} more have faces", with_faces.size() - 1),
            with_faces.size() == 1 ? "its" : "their"));
    for (const std::string& note : tasks::notes_of(report)) result.warnings.push_back(note);
}

/// A shape that cannot be scored ends the command: a mean of the others would be no score of the set.
Result run_metrics(const MetricsCommand& command, const Common& common) {
    if (command.list) return list_metrics(common);
    const tasks::ScorePlan plan = plan_of(command, common);
    const Shard shard = parse_shard(command.shard);
    std::vector<data::ShapePair> pairs = data::pair_shapes(command.prediction, command.truth, command.mesh);
    std::vector<OutputFile> outputs = error_outputs(command.errors, pairs);
    const size_t all = pairs.size();
    keep_shard(shard, pairs, outputs);
    if (pairs.empty()) return nothing_of_shard(command.shard, all);
    const std::vector<io::Format> formats = require_outputs(outputs, common, "error_to_truth");
    require_picture(command.picture, common);
    STIPPLE_REQUIRE(command.picture.empty() || pairs.size() <= kMaxPanels,
                    "--picture draws at most {} shapes, here are {}", kMaxPanels, pairs.size());

    Result result;
    result.fields["inputs"] = Json::array({command.prediction, command.truth});
    if (!command.mesh.empty()) result.fields["inputs"].push_back(command.mesh);
    Common each = common;  // of many files only the count of shapes is shown
    if (pairs.size() > 1) each.progress = ProgressMode::never;
    std::vector<std::string> with_faces;
    std::vector<Mesh> clouds;  // with errors, as far as they are drawn
    std::vector<metrics::Evaluation> found;
    Progress progress("metrics", static_cast<int64_t>(pairs.size()), progress_mode(common), "shapes");
    for (size_t i = 0; i < pairs.size(); ++i) {
        check_interrupted();
        const data::ShapePair& pair = pairs[i];
        PointCloud prediction = load_cloud(pair.prediction, command.how.drop_nonfinite, each, result, with_faces);
        const PointCloud truth = load_cloud(pair.truth, command.how.drop_nonfinite, each, result, with_faces);
        Mesh mesh;
        if (!pair.mesh.empty()) mesh = load_faces({pair.mesh, "", -1}, each, result);
        found.push_back(about_file(pair.prediction, [&] {
            return tasks::score_pair(plan, prediction, truth, pair.mesh.empty() ? nullptr : &mesh);
        }));
        if (plan.evaluate.errors) {
            Mesh cloud;
            cloud.vertices = tasks::with_errors(std::move(prediction), found.back());
            if (!outputs.empty())
                save_output(cloud, outputs[i], formats[i],
                            fmt::format("{} points with their errors", grouped(cloud.vertices.size())), common, result);
            if (!command.picture.empty()) clouds.push_back(std::move(cloud));
        }
        progress.add();
    }
    progress.finish();
    save_picture(
        command.picture, [&] { return draw_errors(clouds, pairs, command.up); }, common, result);

    const tasks::ScoreReport report = tasks::report_scores(plan, pairs, std::move(found));
    result.failure = report.failure;
    result.fields.update(to_json(tasks::score_report_fields(), &report));
    warn(report, with_faces, result);
    if (common.table.empty())
        result.text = report_text(report) + (result.text.empty() ? "" : "\n" + result.text);
    else
        result.text =
            format_table(all > 1 ? shape_table(report, common.table) : score_table(report, common.table), common.table);
    return result;
}

}  // namespace

Command add_metrics(Arguments& root, Common& common) {
    auto command = std::make_shared<MetricsCommand>();
    Arguments& app = root.command("metrics", "Score clouds against the truth, by the protocol of a paper");
    const Fields& fields = tasks::score_options_fields();
    app.option("PRED", command->prediction, "The cloud, or a folder of clouds");
    app.option("TRUTH", command->truth, "What it should be; folders are paired by names without extension");
    app.option("--mesh", command->mesh, "The true surface, or a folder of them, for p2f");
    app.add(fields, &command->how, {"protocol", "metrics", "radius", "floor", "fail_above", "fail_below"});
    app.option("--errors-to", command->errors,
               "Write the prediction with the error of each point; for folders: a folder");
    app.option("--picture", command->picture, "Draw the errors with a colour bar into this .png");
    add_up(app, command->up);
    app.add(fields, &command->how, "drop_nonfinite");
    add_shard(app, command->shard);
    app.flag("--list", command->list, "Print all metrics with their formulas and stop");
    app.footer(
        "Example:\n  stipple metrics dense.xyz truth.xyz --mesh shape.off\n"
        "  stipple metrics out/ gt/ --mesh meshes/ --floor --fail-above cd=0.0003 --json");
    return {&app, [command, &common] { return run_metrics(*command, common); }};
}

}  // namespace stipple::cli
