#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/core/interrupt.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/reconstruct.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct RebuildOptions {
    std::string model;
    int64_t count = 0, turns = 1;
    PoseArguments pose;
    bool force = false;
};

/// The network and what all clouds of a call share.
struct Rebuilding {
    std::shared_ptr<tasks::Reconstructor> network;
    tasks::ReconstructOptions how;
};

Rebuilding rebuilding_of(const RebuildOptions& options, const Common& common) {
    STIPPLE_REQUIRE(options.count >= 0, "-n must be from 1, got {}", options.count);
    STIPPLE_REQUIRE(options.turns >= 1 && options.turns <= 360, "--turns must be 1 to 360, got {}", options.turns);
    Rebuilding rebuilding;
    rebuilding.network = std::make_shared<tasks::Reconstructor>(
        tasks::load_model_or_engine(options.model.empty() ? tasks::shipped_weights(tasks::kAutoencoderWeights)
                                                          : options.model),
        tasks::RunnerOptions{.device = common.device, .batch = 24, .points = tasks::kMostSeen});
    rebuilding.how = {.count = options.count,
                      .poses = options.pose.poses(rebuilding.network->up()),
                      .turns = options.turns,
                      .force = options.force};
    tasks::require_count(*rebuilding.network, options.count);
    return rebuilding;
}

/// A cloud of its shape, in place of the mesh.
StepReport rebuild(Mesh& mesh, const Rebuilding& rebuilding) {
    StepReport report;
    PointCloud cloud = finite_points(mesh, report);
    recentre(cloud);
    tasks::Reconstructed made = tasks::reconstruct(*rebuilding.network, cloud, rebuilding.how);
    mesh = Mesh();
    mesh.vertices = std::move(made.cloud);
    const int64_t points = mesh.vertices.size();
    report.fields["seen"] = made.points;
    report.fields["rebuilt"] = points;
    report.fields["rms_to_rebuilt"] = made.radius * made.gaps.to_made;
    report.fields["rms_from_rebuilt"] = made.radius * made.gaps.from_made;
    report.fields["unlikeness"] = made.unlikeness ? Json(*made.unlikeness) : Json(nullptr);
    report.fields["unlike"] = made.unlikeness ? Json(made.is_unlike()) : Json(nullptr);
    std::string turned;
    if (rebuilding.how.poses.size() > 1) {
        const std::string pose = describe(rebuilding.how.poses[made.pose], rebuilding.network->up());
        report.fields["pose"] = pose;
        turned = ", " + pose;
    }
    if (rebuilding.how.turns > 1) {
        report.fields["turned_degrees"] = made.turned;
        turned += fmt::format(", turned by {:.4g} degrees about the up axis", made.turned);
    }
    report.what = fmt::format("{} points of {}, which lie {:.2g} from them (RMS){}", grouped(points),
                              grouped(cloud.size()), made.radius * made.gaps.to_made, turned);
    if (made.is_unlike())
        report.warnings.push_back(
            fmt::format("unlike what the weights were trained on, {:.2f} times the limit: not to "
                        "be trusted",
                        *made.unlikeness));
    else if (!made.unlikeness)
        report.warnings.emplace_back(
            "the weights do not tell what is unlike the clouds that they were trained on (stipple weights confidence)");
    const auto& metadata = rebuilding.network->runner().source().metadata();
    const auto trained = metadata.find("stipple.trained");
    if (trained != metadata.end() && trained->second == "false")
        report.warnings.emplace_back("the weights are random, so is what they make");
    return report;
}

Image draw_rebuilt(const PointCloud& before, const PointCloud& after) {
    const picture::Panel panels[] = {
        {.cloud = &before,
         .caption = fmt::format("input, {} points", grouped(before.size())),
         .color_by = "#ce462c",
         .point_radius = before.size() <= 512 ? 6.0 : 0.0},
        {.cloud = &after, .caption = fmt::format("rebuilt, {} points", grouped(after.size()))}};
    picture::FigureStyle style;
    style.eye_dome = picture::EyeDome::off;  // single shapes, also where they are flat
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

struct RebuildCommand {
    std::vector<std::string> inputs;
    std::string from, picture, shard;
    OutputFile output;
    std::shared_ptr<RebuildOptions> how;
};

Result run_reconstruct(const RebuildCommand& command, const Common& common) {
    require_one_stdin(command.inputs);
    const Shard shard = parse_shard(command.shard);
    std::vector<data::CloudEntry> entries = data::list_clouds(command.inputs);
    std::vector<OutputFile> outputs = outputs_of(command.output, entries);
    const size_t all = entries.size();
    keep_shard(shard, entries, outputs);
    if (entries.empty()) return nothing_of_shard(command.shard, all);
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common));
    STIPPLE_REQUIRE(command.picture.empty() || entries.size() == 1, "--picture is for one cloud, not {}",
                    entries.size());
    require_picture(command.picture, common);
    const Rebuilding rebuilding = rebuilding_of(*command.how, common);
    FileProgress file_progress(common);
    const data::ReadClouds how = reading({.clouds = {}, .from = command.from}, file_progress);
    Result result;
    result.fields["inputs"] = command.inputs;
    result.fields["model"] = rebuilding.network->runner().source().name();
    result.fields["classes"] = rebuilding.network->classes();
    Json files = Json::array();
    Table table{{"file", "points", "rebuilt", "rms", "unlikeness", "written"}, {}};
    std::optional<Progress> progress;
    if (entries.size() > 1)
        progress.emplace("reconstruct", static_cast<int64_t>(entries.size()), progress_mode(common), "clouds");
    int64_t refused = 0;
    for_each_input(entries.size(), "clouds", result, [&](size_t i) {
        check_interrupted();
        const std::string name = entries[i].name();
        try {
            Mesh mesh = data::load_entry(entries[i], how, result.warnings);
            const PointCloud before = command.picture.empty() ? PointCloud() : drop_nonfinite(mesh.vertices);
            const StepReport report = about_file(name, [&] { return rebuild(mesh, rebuilding); });
            for (const std::string& warning : report.warnings)
                result.warnings.push_back(fmt::format("{}: {}", name, warning));
            save_output(mesh, outputs[i], formats[i], report.what, common, result);
            save_picture(
                command.picture, [&] { return draw_rebuilt(before, mesh.vertices); }, common, result);
            Json file = report.fields;
            file["path"] = name;
            table.rows.push_back(
                {name, file["points"], file["rebuilt"], file["rms_to_rebuilt"], file["unlikeness"], !common.dry_run});
            files.push_back(std::move(file));
        } catch (const Error& error) {
            files.push_back({{"path", name}, {"error", error.message()}});
            if (error.code() != ErrorCode::check_failed) throw;
            if (entries.size() == 1) throw error.at_path(name);
            result.errors.push_back(error.at_path(name));
            ++refused;
        }
        if (progress) progress->add();
    });
    if (progress) progress->finish();
    if (refused > 0)
        result.failure = Error(result.errors[0].code(),
                               fmt::format("{} of {} clouds are unlike what can be rebuilt{}", refused, entries.size(),
                                           static_cast<int64_t>(result.errors.size()) > refused
                                               ? fmt::format(", {} could not be read",
                                                             static_cast<int64_t>(result.errors.size()) - refused)
                                               : ""));
    result.fields["files"] = std::move(files);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

std::shared_ptr<RebuildOptions> add_rebuild_options(Arguments& app) {
    auto options = std::make_shared<RebuildOptions>();
    app.option("-n,--count", options->count, "Points wanted; all that the network makes, mostly 2048, without it")
        .no_default();
    app.option("--model", options->model,
               fmt::format("Weights by path or name, or an engine; else {}", tasks::kAutoencoderWeights));
    add_pose_options(app, options->pose);
    app.option("--turns", options->turns, "Try so many turns about the up axis too, and take the likeliest").text("N");
    app.flag("--force", options->force, "Rebuild also what is unlike anything that the network knows");
    return options;
}

}  // namespace

MakeStep add_reconstruct_step(Arguments& app, const Common& common) {
    return [options = add_rebuild_options(app), &common] {
        const Rebuilding rebuilding = rebuilding_of(*options, common);
        Step step;
        step.run = [rebuilding](Mesh& mesh) { return rebuild(mesh, rebuilding); };
        return step;
    };
}

Command add_reconstruct(Arguments& root, Common& common) {
    auto command = std::make_shared<RebuildCommand>();
    Arguments& app = root.command("reconstruct", "Make a full cloud of few points of a known kind of shape");
    Option input = app.option("INPUT", command->inputs, "Clouds, folders of them; - is standard input");
    Option output = app.option("-o,--output", command->output.path, "File, or folder for many; - is standard output");
    command->how = add_rebuild_options(app);
    app.option("--picture", command->picture, "Draw input and result side by side into this .png");
    app.option("--from", command->from, "Format of the inputs, when names do not tell");
    add_output_format(app, command->output);
    add_shard(app, command->shard);
    app.footer(
        "A network makes a cloud of a kind of shape that it knows (airplanes, cars, chairs, tables) from\n"
        "as few as 8 points, and refuses others. stipple mesh surface makes a surface of any shape, but\n"
        "needs points all over it.\n\n"
        "Example:\n  stipple reconstruct few.ply -o full.ply --picture full.png\n"
        "  stipple reconstruct chairs/ --up y -n 1024 -o full/");
    return {&app, [command, &common] { return run_reconstruct(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
