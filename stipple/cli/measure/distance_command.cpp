#include "stipple/cli/commands.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/tasks/measure.h"

namespace stipple::cli {
namespace {

struct DistanceCommand {
    InputFile reference, points;
    OutputFile output;
    std::string picture, up = "z";
    tasks::DistanceOptions how;
};

Image draw(const PointCloud& cloud, const DistanceCommand& command) {
    const char* title = command.how.is_signed ? "signed distance, negative inside" : "distance";
    return draw_values({&cloud}, {""}, {"distance", title, command.how.is_signed, command.up});
}

/// A mesh where there are faces and --to does not say points, else a cloud of finite points.
Mesh load_reference(const DistanceCommand& command, const Common& common, Result& result) {
    if (command.how.to == tasks::DistanceTo::surface) return load_faces(command.reference, common, result);
    Mesh reference = load_with_progress(command.reference.path, command.reference.from, command.reference.item, common,
                                        result.warnings);
    if (command.how.to == tasks::DistanceTo::points) reference.triangles = Array<int32_t, 2>({0, 3});
    if (reference.faces() > 0) {
        require_finite_faces(reference, command.reference.path);
        recentre(reference.vertices);
    } else if (bounds_of(reference.vertices).finite == 0) {
        throw Error(ErrorCode::bad_file, Place{command.reference.path}, "has no finite points");
    }
    return reference;
}

Result run_distance(const DistanceCommand& command, const Json& inputs, const Common& common) {
    tasks::DistanceOptions how = command.how;
    require_one_stdin({command.reference.path, command.points.path});
    io::Format format{};
    if (!command.output.path.empty()) format = require_output(command.output, common, "distance");
    require_picture(command.picture, common);
    Result result;
    result.fields["inputs"] = inputs;
    how.device = parse_device(common.device);
    Mesh reference = load_reference(command, common, result), measured;
    const bool to_surface = reference.faces() > 0;
    STIPPLE_REQUIRE(to_surface || !how.is_signed, "--signed needs a surface, {} is a cloud", command.reference.path);
    measured.vertices = load_points(command.points, common, result);
    const tasks::Distances found =
        about_file(command.reference.path, [&] { return tasks::measure_distances(reference, measured.vertices, how); });
    result.fields.update(to_json(tasks::distances_fields(), &found));
    Table table{{"points"}, {{found.points}}};
    std::vector<std::pair<std::string, std::string>> pairs = {{"points", grouped(found.points)}};
    if (found.inside) pairs.emplace_back("inside", grouped(*found.inside));
    const Json values = result.fields.value("distance");
    for (const Field& field : tasks::distance_summary_fields()) {
        const Json value = values.value(field.name);
        if (value.is_null()) continue;
        table.columns.push_back(field.name);
        table.rows[0].push_back(value);
        pairs.emplace_back(field.name, fmt::format("{:.6g}", value.number()));
    }
    result.text = fmt::format("{} of {} to {}\n", how.is_signed ? "signed distance, negative inside," : "distance",
                              printable(command.points.path), printable(command.reference.path)) +
                  format_pairs(pairs, 2);
    if (!command.output.path.empty())
        save_output(
            measured, command.output, format,
            fmt::format("{} points with distance and {}", grouped(found.points), to_surface ? "face" : "nearest"),
            common, result);
    save_picture(
        command.picture, [&] { return draw(measured.vertices, command); }, common, result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_distance(Arguments& root, Common& common) {
    auto command = std::make_shared<DistanceCommand>();
    Arguments& app = root.command("distance", "Measure how far points are from a cloud or a surface");
    Option points = app.option("POINTS", command->points.path, "The cloud that is measured; - is standard input");
    Option reference = app.option("REFERENCE", command->reference.path, "A cloud or a mesh");
    add_output(app, command->output).help("The points with distance and what is nearest; - is standard output");
    app.add(tasks::distance_fields(), &command->how);
    app.option("--picture", command->picture, "Draw the points by distance into this .png");
    add_up(app, command->up);
    add_output_format(app, command->output);
    app.option("--from", command->points.from, "Format of the points, when name and content do not tell");
    app.option("--item", command->points.item, "Which cloud of a file that holds many, from 0")
        .from_zero()
        .no_default();
    app.footer(
        "Example:\n  stipple distance after.las before.las -o change.las --picture change.png\n"
        "  stipple distance scan.ply part.stl --signed --json");
    const auto run = [command, &common] {
        return run_distance(*command, Json::array({command->points.path, command->reference.path}), common);
    };
    return {&app, run, {points, reference}};
}

Command add_mesh_distance(Arguments& group, Common& common) {
    auto command = std::make_shared<DistanceCommand>();
    command->how.to = tasks::DistanceTo::surface;
    Arguments& app = group.command("distance", "Measure how far points are from a mesh; see stipple distance");
    Option mesh = app.option("MESH", command->reference.path, "The surface");
    Option points = app.option("POINTS", command->points.path, "The cloud; - is standard input");
    add_output(app, command->output).help("The points with distance and nearest face; - is standard output");
    app.add(tasks::distance_fields(), &command->how, "signed");
    app.option("--picture", command->picture, "Draw the points by distance into this .png");
    add_up(app, command->up);
    add_output_format(app, command->output);
    app.option("--from", command->points.from, "Format of the points, when name and content do not tell");
    app.option("--item", command->points.item, "Which cloud of a file that holds many, from 0")
        .from_zero()
        .no_default();
    app.footer("Example:\n  stipple mesh distance part.stl scan.ply --signed -o dist.ply --picture dist.png");
    const auto run = [command, &common] {
        return run_distance(*command, Json::array({command->reference.path, command->points.path}), common);
    };
    return {&app, run, {mesh, points}};
}

}  // namespace stipple::cli
