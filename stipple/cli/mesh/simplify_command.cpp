#include "stipple/cli/mesh/commands.h"
#include "stipple/tasks/simplify_mesh.h"

namespace stipple::cli {
namespace {

struct MeshSimplifyCommand {
    MeshFiles files;
    tasks::SimplifyMeshOptions how;
};

MadeOfMesh simplify(const Mesh& mesh, const MeshSimplifyCommand& command, Result& result) {
    tasks::SimplifiedMesh made = tasks::simplify_mesh(mesh, command.how);
    if (made.faces > made.wanted)
        result.warnings.push_back(fmt::format("{}: {} faces are left, fewer would break the surface",
                                              command.files.input.path, grouped(made.faces)));
    return {std::move(made.mesh), to_json(tasks::simplified_mesh_fields(), &made),
            fmt::format("{} of {} faces; old vertices are off by {:.3g} RMS, {:.3g} at most", grouped(made.faces),
                        grouped(made.faces_before), made.deviation.rms, made.deviation.max)};
}

Result run_simplify(const MeshSimplifyCommand& command, const Common& common) {
    tasks::require_valid(command.how);
    return run_mesh_command(command.files, common,
                            {{"file", "file"},
                             {"faces before", "faces_before"},
                             {"faces", "faces"},
                             {"vertices", "vertices"},
                             {"rms", "deviation.rms"},
                             {"max", "deviation.max"},
                             {"written", "written"}},
                            load_faces,
                            [&](const Mesh& mesh, Result& result) { return simplify(mesh, command, result); });
}

}  // namespace

Command add_mesh_simplify(Arguments& group, Common& common) {
    auto command = std::make_shared<MeshSimplifyCommand>();
    Arguments& app = group.command("simplify", "Fewer faces for nearly the same surface");
    Option input = app.option("INPUT", command->files.input.path, "The mesh; - is standard input");
    Option output = add_output(app, command->files.output);
    app.add(tasks::simplify_mesh_fields(), &command->how);
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Example:\n  stipple mesh simplify statue.ply --faces 20000 -o light.ply\n"
        "  stipple mesh simplify part.stl --ratio 0.1 -o part.obj");
    return {&app, [command, &common] { return run_simplify(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
