#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/clean.h"

namespace stipple::cli {
namespace {

/// What was removed in red, and what is left.
Image before_and_after(const PointCloud& before, const PointCloud& after, const std::vector<int32_t>& removed) {
    PointCloud marked;
    marked.positions = before.positions.clone();
    marked.origin = before.origin;
    Attribute color("color", DType::u8, before.size(), 3);
    const auto rgb = color.as<uint8_t>();
    std::fill_n(rgb.data(), rgb.elements(), uint8_t{170});
    for (const int32_t i : removed)
        for (int channel = 0; channel < 3; ++channel) rgb(i, channel) = channel == 0 ? 214 : 40;
    marked.attributes.push_back(std::move(color));
    const picture::Panel panels[] = {
        {.cloud = &marked,
         .caption = fmt::format("input, {} points, {} to go", grouped(before.size()), grouped(int64_t(removed.size()))),
         .color_by = "color"},
        {.cloud = &after, .caption = fmt::format("cleaned, {} points", grouped(after.size()))}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

StepReport report_of(const tasks::Cleaned& done, int64_t faces) {
    StepReport report{fmt::format("{} of {} points; removed: {}", grouped(int64_t(done.kept_points.size())),
                                  grouped(done.points), tasks::removed_text(done.steps))};
    report.fields = to_json(tasks::cleaned_fields(), &done);
    warn_of_faces(faces, report);
    return report;
}

struct CleanCommand : CloudCommand<tasks::CleanOptions> {
    OutputFile removed;
};

Result run_clean(const CleanCommand& command, const Common& common) {
    const auto& [input, output] = command.files;
    check_options(*command.how);
    STIPPLE_REQUIRE(command.removed.path.empty() || command.removed.path != output.path,
                    "--removed-to and -o are the same file");
    const io::Format format = require_output(output, common);
    const io::Format removed_format = command.removed.path.empty() ? format : require_output(command.removed, common);
    require_picture(command.picture, common);
    Result result;
    const Mesh mesh = load_input(input, common, result);
    command.how->device = parse_device(common.device);
    const tasks::Cleaned done = about_file(input.path, [&] { return tasks::clean(mesh.vertices, *command.how); });
    const StepReport report = report_of(done, mesh.faces());
    tell(report, input.path, result);
    Mesh cleaned, rest;
    cleaned.vertices = tasks::points_at(mesh.vertices, done.kept_points);
    save_output(cleaned, output, format, report.what, common, result);
    if (!command.removed.path.empty()) {
        rest.vertices = tasks::points_at(mesh.vertices, done.removed_points);
        if (done.removed_points.empty() && !io::info_of(removed_format).counts)
            result.warnings.push_back(fmt::format("{}: not written, nothing was removed and {} cannot hold no points",
                                                  command.removed.path, io::info_of(removed_format).name));
        else
            save_output(rest, command.removed, removed_format,
                        fmt::format("the {} removed points", grouped(rest.vertices.size())), common, result);
    }
    save_picture(
        command.picture, [&] { return before_and_after(mesh.vertices, cleaned.vertices, done.removed_points); }, common,
        result);
    if (!common.table.empty()) {
        Table table{{"step", "removed", "left"}, {}};
        for (const tasks::CleanStep& step : done.steps)
            table.rows.push_back({tasks::kCleanMethodWords[static_cast<size_t>(step.method)], step.removed, step.left});
        result.text = format_table(table, common.table);
    }
    return result;
}

std::shared_ptr<tasks::CleanOptions> add_clean_options(Arguments& app) {
    auto options = std::make_shared<tasks::CleanOptions>();
    app.add(tasks::clean_fields(), options.get(), "method").separated_by(',').one_word();
    app.add(tasks::clean_fields(), options.get(), {"k", "ratio", "radius", "neighbours", "distance"});
    return options;
}

}  // namespace

MakeStep add_clean_step(Arguments& app, const Common& common) {
    return [options = add_clean_options(app), &common] {
        check_options(*options);
        Step step{.only_removes = true};
        step.run = [options, &common](Mesh& mesh) {
            options->device = parse_device(common.device);
            const tasks::Cleaned done = tasks::clean(mesh.vertices, *options);
            StepReport report = report_of(done, mesh.faces());
            Mesh left;
            left.vertices = tasks::points_at(mesh.vertices, done.kept_points);
            mesh = std::move(left);
            return report;
        };
        return step;
    };
}

Command add_clean(Arguments& root, Common& common) {
    auto command = std::make_shared<CleanCommand>();
    Arguments& app = root.command("clean", "Remove outliers, duplicates and points without a place");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    command->how = add_clean_options(app);
    app.option("--removed-to", command->removed.path, "Write what was removed here");
    app.option("--picture", command->picture, "Draw input and result side by side into this .png");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Example:\n  stipple clean scan.ply -o clean.ply --removed-to rest.ply --picture clean.png\n"
        "  stipple clean scan.las --method duplicates,radius --radius 0.5 -o clean.las");
    return {&app, [command, &common] { return run_clean(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
