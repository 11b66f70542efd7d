#include "stipple/cli/commands.h"
#include "stipple/cli/common/many_clouds.h"
#include "stipple/cli/steps.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/reconstruct.h"

namespace stipple::cli {
namespace {

struct ReconstructCommand {
    ManyClouds clouds;
    tasks::RebuildOptions how;
};

std::shared_ptr<tasks::CloudRebuilder> rebuilder_of(tasks::RebuildOptions options, const Common& common) {
    options.device = common.device;
    return std::make_shared<tasks::CloudRebuilder>(options);
}

/// Puts a cloud of its shape in the place of the mesh.
StepReport rebuild(Mesh& mesh, tasks::CloudRebuilder& rebuilder) {
    StepReport report;
    PointCloud cloud = finite_points(mesh, report);
    recentre(cloud);
    const int64_t points = cloud.size();
    const tasks::RebuiltCloud made = rebuilder.rebuild(cloud);
    mesh = Mesh();
    mesh.vertices = std::move(cloud);
    report.fields.update(to_json(tasks::rebuilt_fields(), &made));
    report.what = fmt::format("{} points of {}, which lie {:.2g} from them (RMS)", grouped(made.rebuilt),
                              grouped(points), made.rms_to_rebuilt);
    if (made.pose) report.what += ", " + *made.pose;
    if (made.turned_degrees)
        report.what += fmt::format(", turned by {:.4g} degrees about the up axis", *made.turned_degrees);
    if (made.unlike.value_or(false))
        report.warnings.push_back(fmt::format(
            "unlike what the weights were trained on, {:.2f} times the limit: not to be trusted", *made.unlikeness));
    else if (!made.unlikeness)
        report.warnings.emplace_back(
            "the weights do not tell what is unlike the clouds that they were trained on (stipple weights confidence)");
    const auto& metadata = rebuilder.reconstructor().runner().source().metadata();
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

Json reconstruct_one(const CloudJob& job, tasks::CloudRebuilder& rebuilder, const std::string& picture,
                     const Common& common) {
    const std::string name = job.entry.name();
    Mesh mesh = data::load_entry(job.entry, job.how, job.result.warnings);
    const PointCloud before = picture.empty() ? PointCloud() : drop_nonfinite(mesh.vertices);
    const StepReport report = about_file(name, [&] { return rebuild(mesh, rebuilder); });
    for (const std::string& warning : report.warnings)
        job.result.warnings.push_back(fmt::format("{}: {}", name, warning));
    save_output(mesh, job.output, job.format, report.what, common, job.result);
    save_picture(
        picture, [&] { return draw_rebuilt(before, mesh.vertices); }, common, job.result);
    return report.fields;
}

Result run_reconstruct(ReconstructCommand& command, const Common& common) {
    const CloudLoop loop{.progress = "reconstruct",
                         .columns = {{"file", "path"},
                                     {"points", "points"},
                                     {"rebuilt", "rebuilt"},
                                     {"rms", "rms_to_rebuilt"},
                                     {"unlikeness", "unlikeness"},
                                     {"written", "written"}},
                         .refused = "are unlike what can be rebuilt"};
    return for_each_cloud(command.clouds, loop, common, [&](Result& result) -> CloudWork {
        const auto rebuilder = rebuilder_of(command.how, common);
        result.fields["model"] = rebuilder->reconstructor().runner().source().name();
        result.fields["classes"] = rebuilder->reconstructor().classes();
        return [&, rebuilder](const CloudJob& job) {
            return reconstruct_one(job, *rebuilder, command.clouds.picture, common);
        };
    });
}

}  // namespace

MakeStep add_reconstruct_step(Arguments& app, const Common& common) {
    auto options = std::make_shared<tasks::RebuildOptions>();
    app.add(tasks::rebuild_fields(), options.get());
    return [options, &common] {
        Step step;
        step.run = [rebuilder = rebuilder_of(*options, common)](Mesh& mesh) { return rebuild(mesh, *rebuilder); };
        return step;
    };
}

Command add_reconstruct(Arguments& root, Common& common) {
    auto command = std::make_shared<ReconstructCommand>();
    Arguments& app = root.command("reconstruct", "Make a full cloud of few points of a known kind of shape");
    const std::vector<Option> required =
        add_inputs_and_output(app, command->clouds, "Clouds, folders of them; - is standard input");
    app.add(tasks::rebuild_fields(), &command->how);
    app.option("--picture", command->clouds.picture, "Draw input and result side by side into this .png");
    add_input_format(app, command->clouds);
    add_output_format(app, command->clouds.output);
    add_shard(app, command->clouds);
    app.footer(
        "A network makes a cloud of a kind of shape that it knows (airplanes, cars, chairs, tables) from\n"
        "as few as 8 points, and refuses others. stipple mesh surface makes a surface of any shape, but\n"
        "needs points all over it.\n\n"
        "Example:\n  stipple reconstruct few.ply -o full.ply --picture full.png\n"
        "  stipple reconstruct chairs/ --up y -n 1024 -o full/");
    return {&app, [command, &common] { return run_reconstruct(*command, common); }, required};
}

}  // namespace stipple::cli
