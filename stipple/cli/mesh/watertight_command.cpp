#include "stipple/cli/mesh/commands.h"
#include "stipple/tasks/solid.h"

namespace stipple::cli {
namespace {

struct MeshWatertightCommand {
    MeshFiles files;
    tasks::SolidOptions how;
};

/// The facts of both meshes side by side, and how far each surface is from the other.
Table comparison(const tasks::Solid& solid) {
    Table table{{"", "before", "after"},
                {{"vertices", grouped(solid.before.vertices), grouped(solid.after.vertices)},
                 {"faces", grouped(solid.before.faces), grouped(solid.after.faces)}}};
    const auto left = pairs_of(solid.before), right = pairs_of(solid.after);
    for (size_t i = 0; i < left.size(); ++i) table.rows.push_back({left[i].first, left[i].second, right[i].second});
    for (const auto& [name, distance] : {std::pair("from input to result", &solid.input_to_result),
                                         std::pair("from result to input", &solid.result_to_input)})
        if (!std::isnan(distance->mean))
            table.rows.push_back(
                {name, fmt::format("mean {:.3g}", distance->mean), fmt::format("largest {:.3g}", distance->largest)});
    return table;
}

void warn(const tasks::Solid& solid, const std::string& path, Result& result) {
    if (solid.wanted > 0 && solid.after.faces > solid.wanted)
        result.warnings.push_back(
            fmt::format("{}: {} faces are left, fewer would break the surface", path, grouped(solid.after.faces)));
    constexpr double kHollow = 0.1;
    if (solid.hollow > kHollow)
        result.warnings.push_back(fmt::format(
            "{}: hollow: {:.0f} % of what the input encloses is outside of the result, a shell with two walls, because "
            "holes let the outside in: close them with --cap-holes N, N voxels being wider than they are, or take a "
            "lower --resolution",
            path, 100 * solid.hollow));
}

Result run_watertight(const MeshWatertightCommand& command, const Common& common) {
    tasks::require_valid(command.how);
    const std::string& path = command.files.input.path;
    Table table;
    Result result = run_mesh_command(command.files, common, {}, load_faces, [&](const Mesh& mesh, Result& told) {
        if (!mesh.vertices.attributes.empty() || !mesh.face_attributes.empty())
            told.warnings.push_back(fmt::format("{}: the new surface has no attributes", path));
        tasks::Solid solid = tasks::make_solid(mesh, command.how);
        warn(solid, path, told);
        table = comparison(solid);
        return MadeOfMesh{
            .mesh = std::move(solid.mesh),
            .fields = to_json(tasks::solid_fields(), &solid),
            .summary = fmt::format("{} vertices, {} faces", grouped(solid.after.vertices), grouped(solid.after.faces)),
            .text = format_table(table, "") + "\n"};
    });
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_mesh_watertight(Arguments& group, Common& common) {
    auto command = std::make_shared<MeshWatertightCommand>();
    Arguments& app = group.command("watertight", "Close any triangle soup: manifold, oriented, without holes");
    Option input = app.option("MESH", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    app.add(tasks::solid_options_fields(), &command->how,
            {"resolution", "cap_holes", "offset", "tolerance", "faces", "ratio", "keep_inner", "project"});
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Open surfaces become thin shells. What is written has been checked; stipple mesh info counts the same.\n\n"
        "Example:\n  stipple mesh watertight chair.obj --resolution 256 -o solid.ply");
    return {&app, [command, &common] { return run_watertight(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
