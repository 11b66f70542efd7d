#include "stipple/cli/mesh/commands.h"
#include "stipple/tasks/surface.h"

namespace stipple::cli {
namespace {

struct MeshSurfaceCommand {
    MeshFiles files;
    tasks::SurfaceOptions how;
};

MadeOfMesh surface(const PointCloud& cloud, const MeshSurfaceCommand& command, const Common& common, Result& result) {
    tasks::SurfaceOptions how = command.how;
    how.device = parse_device(common.device);
    tasks::Surface made = tasks::make_surface(cloud, how);
    const std::string& path = command.files.input.path;
    if (made.normals == tasks::NormalsOfSurface::estimated)
        result.warnings.push_back(fmt::format("{}: has no normals: estimated from {} neighbours and turned {}", path,
                                              how.k, made.faces_sensor ? "towards the sensor" : "outwards"));
    if (made.without_normal > 0)
        result.warnings.push_back(fmt::format("{}: {} of {} points have no usable normal, left out", path,
                                              grouped(made.without_normal), grouped(cloud.size())));
    return {std::move(made.mesh),
            to_json(tasks::surface_fields(), &made),
            fmt::format("{} vertices, {} faces of {} points; watertight: {}", grouped(made.facts.vertices),
                        grouped(made.facts.faces), grouped(cloud.size()), tasks::watertight_text(made.facts)),
            {{"points", cloud.size()}, {"watertight", made.facts.watertight ? "yes" : "no"}}};
}

Result run_surface(const MeshSurfaceCommand& command, const Common& common) {
    return run_mesh_command(
        command.files, common,
        {{"file", "file"},
         {"points", "points"},
         {"vertices", "surface.vertices"},
         {"faces", "surface.faces"},
         {"watertight", "watertight"},
         {"components", "surface.components"},
         {"written", "written"}},
        [](const InputFile& input, const Common& shared, Result& result) {
            PointCloud cloud = load_points(input, shared, result);
            recentre(cloud);
            return cloud;
        },
        [&](const PointCloud& cloud, Result& result) { return surface(cloud, command, common, result); });
}

}  // namespace

Command add_mesh_surface(Arguments& group, Common& common) {
    auto command = std::make_shared<MeshSurfaceCommand>();
    Arguments& app = group.command("surface", "Make a closed surface of points");
    Option input = app.option("CLOUD", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    app.add(tasks::surface_options_fields(), &command->how, {"resolution", "softening", "min_component", "k"});
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Normals must point outwards; a cloud without normals gets estimated ones, and a warning says so.\n\n"
        "Example:\n  stipple mesh surface scan.ply -o scan_mesh.ply");
    return {&app, [command, &common] { return run_surface(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
