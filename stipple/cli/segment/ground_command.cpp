#include "stipple/cli/commands.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/steps.h"
#include "stipple/tasks/label_scan.h"

namespace stipple::cli {
namespace {

using GroundCommand = CloudCommand<tasks::LabelGroundOptions>;

StepReport report_of(const tasks::GroundLabels& found) {
    StepReport report{fmt::format("{} of {} points are ground", grouped(found.ground), grouped(found.points))};
    report.fields = to_json(tasks::ground_labels_fields(), &found);
    if (const auto& before = found.labels_before)
        report.text = fmt::format(
            "the file's own ground (label 2): {} points; agrees at {:.1f} % of all, {} more now, {} fewer\n",
            grouped(before->ground), 100 * before->agree, grouped(before->only_now), grouped(before->only_before));
    return report;
}

/// Without faces.
void keep_ground(Mesh& mesh, const tasks::GroundLabels& found) {
    Mesh part;
    part.vertices = masked(mesh.vertices, found.is_ground);
    mesh = std::move(part);
}

Result run_ground(const GroundCommand& command, const Common& common) {
    const auto& [input, output] = command.files;
    const io::Format format = require_output(output, common, "label");
    require_picture(command.picture, common);
    Result result;
    Mesh mesh = load_input(input, common, result);
    const tasks::GroundLabels found =
        about_file(input.path, [&] { return tasks::label_ground(mesh.vertices, *command.how); });
    const StepReport report = report_of(found);
    tell(report, input.path, result);
    const auto draw = [&] {
        std::vector<int32_t> labels;
        for (const uint8_t is_ground : found.is_ground) labels.push_back(is_ground ? 1 : -1);
        return draw_labels(mesh.vertices, labels, "ground in colour", "z");
    };
    save_picture(command.picture, draw, common, result);
    if (command.how->only) keep_ground(mesh, found);
    save_output(mesh, output, format, report.what, common, result);
    if (!common.table.empty())
        result.text = format_table(
            {{"file", "points", "ground", "written"}, {{output.path, found.points, found.ground, !common.dry_run}}},
            common.table);
    return result;
}

}  // namespace

MakeStep add_ground_step(Arguments& app, const Common&) {
    auto options = std::make_shared<tasks::LabelGroundOptions>();
    app.add(tasks::label_ground_fields(), options.get());
    return [options] {
        Step step{.product = "label"};
        step.run = [options](Mesh& mesh) {
            const tasks::GroundLabels found = tasks::label_ground(mesh.vertices, *options);
            if (options->only) keep_ground(mesh, found);
            return report_of(found);
        };
        return step;
    };
}

Command add_ground(Arguments& root, Common& common) {
    auto command = std::make_shared<GroundCommand>();
    command->how = std::make_shared<tasks::LabelGroundOptions>();
    Arguments& app = root.command("ground", "Find the ground of a scan, and heights above it");
    Option input = app.option("INPUT", command->files.input.path, "The file, z up; - is standard input");
    Option output = add_output(app, command->files.output);
    app.add(tasks::label_ground_fields(), command->how.get());
    app.option("--picture", command->picture, "Draw the ground in colour into this .png");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Lengths are in the unit of the file; the defaults are for metres.\n\n"
        "Example:\n  stipple ground scan.las -o ground.las --picture ground.png\n"
        "  stipple ground feet.las --cell 3 --window 120 --step 1 --height 0.8 -o ground.las");
    return {&app, [command, &common] { return run_ground(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
