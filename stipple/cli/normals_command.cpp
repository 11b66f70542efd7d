#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/normals.h"

namespace stipple::cli {
namespace {

const char* word_of(tasks::Orientation orientation) {
    return tasks::kOrientationWords[static_cast<size_t>(orientation)];
}

StepReport report_of(const tasks::NormalsFound& found) {
    StepReport report{fmt::format("normals of {} points, {}", grouped(found.points),
                                  found.orient == tasks::Orientation::none
                                      ? "not oriented"
                                      : fmt::format("oriented by {}", word_of(found.orient)))};
    if (found.without_normal > 0)
        report.warnings.push_back(fmt::format("{} of {} points get the normal 0 0 0: their neighbours span no plane",
                                              grouped(found.without_normal), grouped(found.points)));
    report.fields = to_json(tasks::normals_found_fields(), &found);
    return report;
}

Image before_and_after(const PointCloud& before, const PointCloud& after, int k) {
    const picture::Panel panels[] = {
        {.cloud = &before, .caption = fmt::format("input, {} points", grouped(before.size()))},
        {.cloud = &after, .caption = fmt::format("normals, k = {}", k), .color_by = "normal"}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

using NormalsCommand = CloudCommand<tasks::NormalsOptions>;

Result run_normals(const NormalsCommand& command, const Common& common) {
    const auto& [input, output] = command.files;
    check_options(*command.how);
    const io::Format format = require_output(output, common, "normal");
    require_picture(command.picture, common);
    Result result;
    Mesh mesh = load_input(input, common, result);
    PointCloud& cloud = mesh.vertices;
    const PointCloud before = command.picture.empty() ? PointCloud() : cloud.clone();
    command.how->device = parse_device(common.device);
    const tasks::NormalsFound found = about_file(input.path, [&] { return tasks::add_normals(cloud, *command.how); });
    const StepReport report = report_of(found);
    tell(report, input.path, result);
    save_output(mesh, output, format, report.what, common, result);
    save_picture(
        command.picture, [&] { return before_and_after(before, cloud, found.k); }, common, result);
    if (!common.table.empty()) {
        const Table table{{"file", "format", "points", "without_normal", "orient", "written"},
                          {{output.path, io::info_of(format).name, cloud.size(), found.without_normal,
                            word_of(found.orient), !common.dry_run}}};
        result.text = format_table(table, common.table);
    }
    return result;
}

}  // namespace

MakeStep add_normals_step(Arguments& app, const Common& common) {
    auto options = std::make_shared<tasks::NormalsOptions>();
    app.add(tasks::normals_fields(), options.get());
    return [options, &common] {
        check_options(*options);
        Step step{.product = "normal"};
        step.run = [options, &common](Mesh& mesh) {
            options->device = parse_device(common.device);
            return report_of(tasks::add_normals(mesh.vertices, *options));
        };
        return step;
    };
}

Command add_normals(Arguments& root, Common& common) {
    auto command = std::make_shared<NormalsCommand>();
    Arguments& app = root.command("normals", "Normals of a cloud, and which way they point");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    command->how = std::make_shared<tasks::NormalsOptions>();
    app.add(tasks::normals_fields(), command->how.get());
    app.option("--picture", command->picture, "Draw input and normals side by side into this .png");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Example:\n  stipple normals scan.ply -o normals.ply --picture normals.png\n"
        "  stipple normals sweep.bin -o sweep.ply\n  stipple normals scan.las --viewpoint 512030 5403210 180 -o "
        "scan.ply");
    return {&app, [command, &common] { return run_normals(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
