#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/io/las.h"
#include "stipple/tasks/edit.h"

namespace stipple::cli {
namespace {

using geometry::AffineTransform;

StepReport report_of(const AffineTransform& transform, int64_t points, bool had_system) {
    StepReport report{fmt::format("{} points moved", grouped(points))};
    const tasks::Transformed moved = tasks::transformed_of(points, transform);
    report.fields = to_json(tasks::transformed_fields(), &moved);
    if (had_system)
        report.warnings.emplace_back("its coordinate system is left out, it does not hold for points that were moved");
    return report;
}

struct TransformCommand {
    CloudFiles files;
    std::string transform_to;
    std::shared_ptr<tasks::TransformOptions> how;
};

Result run_transform(const TransformCommand& command, const Common& common) {
    const tasks::TransformOptions& options = *command.how;
    const std::string& path = command.files.input.path;
    check_options(options);
    require_one_stdin({path, options.matrix, options.apply});
    CloudOutput output(command.files.output, common);
    if (!command.transform_to.empty()) require_writable(command.transform_to, common.overwrite_mode());
    const AffineTransform first = tasks::first_matrix(options);
    Result result;
    result.fields["inputs"] = Json::array({path});
    CloudInput input(command.files.input, common, result);
    const AffineTransform transform = tasks::transform_of(options, first, [&](const AffineTransform& before) {
        Bounds all;
        input.for_each([&](const Mesh& piece) { extend(all, tasks::moved_bounds(piece, before)); });
        return all;
    });
    bool had_system = false;
    input.for_each([&](const Mesh& piece) {
        const FileFacts& facts = piece.vertices.facts;
        had_system = had_system || !facts.coordinate_system.empty();
        Mesh moved = geometry::transformed(piece, transform);
        if (input.is_streamed() && facts.las)
            moved.vertices.facts.grid = tasks::moved_grid(facts, io::las_box(*facts.las), transform);
        output.add(std::move(moved));
    });
    const StepReport report = report_of(transform, output.points(), had_system);
    tell(report, path, result);
    output.finish(report.what, "it has no points", result);
    save_text(command.transform_to, geometry::to_text(transform), "transform", common, result);
    if (!common.table.empty())
        result.text = format_table({{"file", "points", "written"}, {{output.path(), output.points(), !common.dry_run}}},
                                   common.table);
    return result;
}

std::shared_ptr<tasks::TransformOptions> add_transform_options(Arguments& app) {
    auto options = std::make_shared<tasks::TransformOptions>();
    const Fields& fields = tasks::transform_fields();
    app.add(fields, options.get(), {"matrix", "apply", "centre", "swap"});
    app.add(fields, options.get(), "scale").count(1, 3);
    app.add(fields, options.get(), "rotate").count(2, 4);
    app.add(fields, options.get(), {"translate", "about", "invert"});
    return options;
}

}  // namespace

MakeStep add_transform_step(Arguments& app, const Common&) {
    return [options = add_transform_options(app)] {
        check_options(*options);
        Step step;
        step.run = [options, first = tasks::first_matrix(*options)](Mesh& mesh) {
            const AffineTransform transform = tasks::transform_of(
                *options, first, [&](const AffineTransform& before) { return tasks::moved_bounds(mesh, before); });
            Mesh moved = geometry::transformed(mesh, transform);
            const FileFacts& facts = mesh.vertices.facts;
            moved.vertices.facts.grid = tasks::moved_grid(facts, bounds_of(mesh.vertices), transform);
            StepReport report = report_of(transform, moved.vertices.size(), !facts.coordinate_system.empty());
            mesh = std::move(moved);
            return report;
        };
        return step;
    };
}

Command add_transform(Arguments& root, Common& common) {
    auto command = std::make_shared<TransformCommand>();
    Arguments& app = root.command("transform", "Move, turn, scale and mirror a cloud or mesh");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    command->how = add_transform_options(app);
    app.option("--transform-to", command->transform_to, "Write the 4 x 4 matrix of all that here").text("FILE");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "What is given is done in the order of the numbers, in world coordinates.\n\n"
        "Example:\n  stipple transform scan.ply --rotate z 90 --translate 0 0 1.5 -o moved.ply\n"
        "  stipple transform scan.ply --apply T.txt --invert -o back.ply");
    return {&app, [command, &common] { return run_transform(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
