#include "stipple/cli/commands.h"
#include "stipple/cli/common/many_clouds.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/geometry/normals.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/normals.h"
#include "stipple/tasks/upsample.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct UpsampleCommand {
    ManyClouds clouds;
    tasks::UpsampleOptions how;
    std::string model;
    std::vector<std::string> settings;
    tasks::RunnerOptions runner;
    bool normals = false;
};

Image draw_both(const PointCloud& before, const PointCloud& after, int64_t size) {
    const picture::Panel panels[] = {
        {.cloud = &before, .caption = fmt::format("input, {} points", grouped(before.size()))},
        {.cloud = &after, .caption = fmt::format("upsampled, {} points", grouped(after.size()))}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = size > 0 ? size : 768;
    return picture::draw_figure(panels, style).image;
}

/// Gives normals to a cloud whose file had none.
void add_normals(PointCloud& cloud) {
    if (find(cloud.attributes, "normal")) return;
    Attribute normals("normal", DType::f32, cloud.size(), 3);
    geometry::estimate_normals(cloud.positions.view(), normals.as<float>(), {});
    tasks::orient_normals(cloud, normals.as<float>());
    cloud.attributes.push_back(std::move(normals));
}

/// One line for people: how many points there are, which of them were measured, and what was left out.
std::string summary_of(const tasks::Upsampled& upsampled) {
    std::string text = fmt::format("{} points of {}, spacing {:.4g} (was {:.4g})", grouped(upsampled.upsampled),
                                   grouped(upsampled.points), upsampled.spacing_after, upsampled.spacing);
    if (upsampled.rings > 0)
        text +=
            fmt::format("; a sweep of {} rings: {} points between them", upsampled.rings, grouped(upsampled.between));
    if (upsampled.measured > 0) text += fmt::format("; {} as measured", grouped(upsampled.measured));
    if (upsampled.dropped > 0)
        text += fmt::format("; {} places beyond rims and in holes left empty", grouped(upsampled.dropped));
    return text;
}

tasks::Upsampler load_upsampler(UpsampleCommand& command, const Common& common) {
    std::map<std::string, std::string> options = model_options(command.settings);
    if (command.model == tasks::kMidpoints) {
        STIPPLE_REQUIRE(options.empty(), "--set is for networks: midpoints have no options");
        return {};
    }
    const std::string path = command.model.empty() ? tasks::shipped_weights(tasks::kUpsamplerWeights) : command.model;
    tasks::ModelOrEngine source = tasks::load_model_or_engine(path, options);
    if (command.how.temperature > 0 && source.model) {
        STIPPLE_REQUIRE(source.model->network.name == "puflow",
                        "--temperature: {} takes no noise; models of PU-Flow do (--model)", path);
        options.emplace("noise", "true");
        source = tasks::load_model_or_engine(path, options);
    }
    command.runner.device = common.device;
    command.runner.profile = wanted_profile(command.clouds);
    return {std::move(source), command.runner};
}

Json upsample_cloud(const CloudJob& job, tasks::Upsampler& upsampler, const UpsampleCommand& command,
                    const Common& common) {
    PointCloud cloud =
        tasks::load_points(job.entry, {.normalise = false, .sample_faces = false}, job.how, job.result.warnings);
    recentre(cloud);
    tasks::Upsampled made = about_file(job.entry.name(), [&] {
        Progress progress("upsample",
                          tasks::upsampling_work(upsampler, cloud, tasks::upsampled_count(cloud, command.how)),
                          progress_mode(common), "points");
        tasks::UpsampleOptions how = command.how;
        how.seed = common.seed;
        how.advance = [&](int64_t points) { progress.add(points); };
        tasks::Upsampled upsampled = tasks::upsample(upsampler, cloud, how);
        if (command.normals) add_normals(upsampled.cloud);
        return upsampled;
    });
    if (made.duplicates > 0)
        job.result.warnings.push_back(fmt::format("{}: {} points lie at the place of another one and were passed over",
                                                  job.entry.name(), grouped(made.duplicates)));
    Mesh mesh;
    mesh.vertices = std::move(made.cloud);
    save_output(mesh, job.output, job.format, summary_of(made), common, job.result);
    save_picture(
        command.clouds.picture, [&] { return draw_both(cloud, mesh.vertices, command.clouds.picture_size); }, common,
        job.result);
    return to_json(tasks::upsampled_fields(), &made);
}

Result run_upsample(UpsampleCommand& command, const Common& common) {
    STIPPLE_REQUIRE(command.how.hole_size == 0 || command.how.holes == tasks::Holes::fill,
                    "--hole-size is for holes that are filled: --holes fill");
    STIPPLE_REQUIRE((command.how.ratio != 0) + (command.how.count != 0) + (command.how.spacing != 0) == 1,
                    "how many points? Give --ratio R, --count N or --spacing D");
    tasks::upsampled_count(PointCloud(0), command.how);  // as far as the numbers can be judged without the cloud
    const CloudLoop loop{.columns = {{"file", "path"},
                                     {"points", "points"},
                                     {"upsampled", "upsampled"},
                                     {"spacing", "spacing"},
                                     {"spacing after", "spacing_after"}}};
    return for_each_cloud(command.clouds, loop, common, [&](Result& result) -> CloudWork {
        auto upsampler = std::make_shared<tasks::Upsampler>(load_upsampler(command, common));
        result.fields["model"] = command.model;
        if (const tasks::NetworkRunner* runner = upsampler->runner()) report_network(*runner, result);
        return [&, upsampler](const CloudJob& job) { return upsample_cloud(job, *upsampler, command, common); };
    });
}

}  // namespace

Command add_upsample(Arguments& root, Common& common) {
    auto command = std::make_shared<UpsampleCommand>();
    Arguments& app = root.command("upsample", "Make clouds denser");
    const std::vector<Option> required =
        add_inputs_and_output(app, command->clouds, "Clouds, folders of them, data sets");
    app.option("--model", command->model, "Weights by path or name, an engine, or midpoints: no network");
    app.add(tasks::upsample_fields(), &command->how);
    app.option("--set", command->settings, "Options that training does not fix, e.g. interpolation_neighbours=12")
        .text("KEY=VALUE...");
    app.flag("--normals", command->normals, "Oriented normals: the input's, else estimated");
    add_picture(app, command->clouds, "Draw input and result into this .png");
    add_input_format(app, command->clouds);
    app.add(tasks::precision_fields(), &command->runner);
    add_output_format(app, command->clouds.output);
    add_shard(app, command->clouds);
    add_profile(app, command->clouds);
    app.footer(
        "The count is exact. Colours, normals, intensities and labels come along. Large clouds are worked on in "
        "tiles,\n"
        "whose borders do not show.\n\n"
        "Example:\n  stipple upsample scan.ply --ratio 4 -o dense.ply --picture dense.png\n"
        "  stipple upsample scans/ --ratio 4 --model puflow.safetensors -o dense/");
    return {&app, [command, &common] { return run_upsample(*command, common); }, required};
}

}  // namespace stipple::cli
