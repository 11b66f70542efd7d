#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/many_clouds.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/core/folder.h"
#include "stipple/geometry/glyphs.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/network_sample.h"

namespace stipple::cli {
namespace {

struct SampleCommand {
    ManyClouds clouds;
    InputFile input;  // its format, and the item of a single file
    std::shared_ptr<tasks::SampleSettings> how;
};

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

Image before_and_after(const PointCloud& before, const PointCloud& after, tasks::SampleMethod method) {
    const bool has_balls = after.size() <= kBalls && method != tasks::SampleMethod::voxel;
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

const std::vector<std::string> kColumns = {"file", "format", "method", "points", "sampled", "written"};

/// Counts the points that were read and have a place.
int64_t finite_of(const StepReport& report) {
    return static_cast<int64_t>(report.fields.value("points").number() - report.fields.value("non_finite").number());
}

std::shared_ptr<tasks::CloudSampler> sampler_of(const tasks::SampleSettings& settings, const Common& common) {
    tasks::SampleSettings resolved = tasks::resolved(settings);
    resolved.seed = common.seed;
    return std::make_shared<tasks::CloudSampler>(resolved, common.device);
}

/// Puts a sample of the finite points in the place of the mesh.
StepReport sample(Mesh& mesh, tasks::CloudSampler& sampler) {
    StepReport report;
    tasks::Sampled sampled = sampler.sample(finite_points(mesh, report));
    report.fields.update(to_json(tasks::sampled_fields(), &sampled));
    report.what = fmt::format("{} of {} points by {}", grouped(sampled.sampled), grouped(sampled.points),
                              name_of(sampled.method));
    if (sampled.proposed)
        report.what += *sampled.proposed == sampled.sampled
                           ? ", all its own"
                           : fmt::format(", {} its own, {} by fps", grouped(*sampled.proposed),
                                         grouped(sampled.sampled - *sampled.proposed));
    mesh = Mesh();
    mesh.vertices = std::move(sampled.cloud);
    return report;
}

Result run_sample(SampleCommand& command, const Common& common) {
    InputFile input = command.input;
    input.path = command.clouds.inputs[0];
    // Everything about the outputs is settled before the first byte is read.
    const io::Format format = require_output(command.clouds.output, common);
    require_picture(command.clouds.picture, common);
    const auto sampler = sampler_of(*command.how, common);
    Result result;
    Mesh mesh = load_input(input, common, result);
    const PointCloud before = command.clouds.picture.empty() ? PointCloud() : drop_nonfinite(mesh.vertices);
    const StepReport report = about_file(input.path, [&] { return sample(mesh, *sampler); });
    tell(report, input.path, result);
    save_output(mesh, command.clouds.output, format, report.what, common, result);
    save_picture(
        command.clouds.picture, [&] { return before_and_after(before, mesh.vertices, sampler->settings().method); },
        common, result);
    if (common.table.empty()) return result;
    const Table table{kColumns,
                      {{command.clouds.output.path, io::info_of(format).name, report.fields.value("method"),
                        finite_of(report), mesh.vertices.size(), !common.dry_run}}};
    result.text = format_table(table, common.table);
    return result;
}

/// Many clouds, each into a file of a folder.
Result run_samples(SampleCommand& command, const Common& common) {
    STIPPLE_REQUIRE(command.clouds.picture.empty(), "--picture is for one cloud");
    STIPPLE_REQUIRE(command.input.item < 0, "--item is for one file");
    command.clouds.from = command.input.from;
    CloudLoop loop;
    for (const std::string& column : kColumns) loop.columns.emplace_back(column, column);
    return for_each_cloud(command.clouds, loop, common, [&](Result&) -> CloudWork {
        return [&common, sampler = sampler_of(*command.how, common)](const CloudJob& job) {
            Mesh mesh = data::load_entry(job.entry, job.how, job.result.warnings);
            StepReport report = about_file(job.entry.name(), [&] { return sample(mesh, *sampler); });
            for (const std::string& warning : report.warnings)
                job.result.warnings.push_back(fmt::format("{}: {}", job.entry.name(), warning));
            save_output(mesh, job.output, job.format, report.what, common, job.result);
            report.fields["file"] = job.output.path;
            report.fields["format"] = io::info_of(job.format).name;
            return report.fields;
        };
    });
}

}  // namespace

MakeStep add_sample_step(Arguments& app, const Common& common) {
    auto settings = std::make_shared<tasks::SampleSettings>();
    app.add(tasks::sample_fields(), settings.get());
    return [settings, &common] {
        const auto sampler = sampler_of(*settings, common);
        // Means are new points; all other methods choose among those there are.
        Step step{.only_removes = sampler->settings().method != tasks::SampleMethod::voxel ||
                                  sampler->settings().keep == tasks::CellPoint::nearest};
        step.run = [sampler](Mesh& mesh) { return sample(mesh, *sampler); };
        return step;
    };
}

Command add_sample(Arguments& root, Common& common) {
    auto command = std::make_shared<SampleCommand>();
    Arguments& app = root.command("sample", "Choose fewer points of a cloud");
    const std::vector<Option> required =
        add_inputs_and_output(app, command->clouds, "The file, - is standard input; several; folders of them");
    command->how = std::make_shared<tasks::SampleSettings>();
    app.add(tasks::sample_fields(), command->how.get());
    app.option("--picture", command->clouds.picture, "Draw input and result side by side into this .png");
    add_output_format(app, command->clouds.output);
    add_input_format(app, command->input);
    add_shard(app, command->clouds);
    app.footer(
        "Example:\n  stipple sample scan.ply -n 4096 -o few.ply --picture few.png\n"
        "  stipple sample scan.las --method voxel --voxel 0.05 -o thin.las\n"
        "  stipple sample scans/ -n 64 --method critical -o few/");
    const auto run = [command, &common] {
        const ManyClouds& clouds = command->clouds;
        const bool is_one = clouds.shard.empty() && clouds.inputs.size() == 1 && !is_folder(clouds.inputs[0]) &&
                            !clouds.output.path.ends_with('/') && !is_folder(clouds.output.path);
        return is_one ? run_sample(*command, common) : run_samples(*command, common);
    };
    return {&app, run, required};
}

}  // namespace stipple::cli
