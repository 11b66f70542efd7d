#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/sample_mesh.h"

namespace stipple::cli {
namespace {

struct MeshSampleCommand {
    MeshFiles files;
    tasks::SampleMeshOptions how;
    std::string picture, up = "z";
};

Image mesh_and_samples(const Mesh& mesh, const PointCloud& cloud, const MeshSampleCommand& command) {
    const char* method = tasks::kSurfaceSamplingWords[static_cast<size_t>(command.how.method)];
    const picture::Panel panels[] = {
        {.mesh = &mesh, .caption = fmt::format("mesh, {} faces", grouped(mesh.faces()))},
        {.cloud = &cloud, .caption = fmt::format("{}, {} points", method, grouped(cloud.size()))}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    style.viewpoint.up = picture::up_axis_by_name(command.up);
    return picture::draw_figure(panels, style).image;
}

MadeOfMesh sample(const Mesh& mesh, tasks::SampleMeshOptions how, const Common& common) {
    how.seed = common.seed;
    tasks::SampledMesh sampled = tasks::sample_mesh(mesh, how);
    MadeOfMesh made;
    made.fields = to_json(tasks::sampled_mesh_fields(), &sampled);
    made.summary = fmt::format("{} points of {} faces by {}", grouped(sampled.sampled), grouped(sampled.faces),
                               tasks::kSurfaceSamplingWords[static_cast<size_t>(sampled.method)]);
    made.mesh.vertices = std::move(sampled.cloud);
    return made;
}

Result run_mesh_sample(const MeshSampleCommand& command, const Common& common) {
    STIPPLE_REQUIRE(command.how.count > 0, "how many points? Give -n COUNT");
    require_picture(command.picture, common);
    const auto draw = [&](const Mesh& mesh, const MadeOfMesh& made, Result& result) {
        save_picture(
            command.picture, [&] { return mesh_and_samples(mesh, made.mesh.vertices, command); }, common, result);
    };
    return run_mesh_command(
        command.files, common,
        {{"file", "file"},
         {"format", "format"},
         {"method", "method"},
         {"faces", "faces"},
         {"sampled", "sampled"},
         {"written", "written"}},
        load_faces, [&](const Mesh& mesh, Result&) { return sample(mesh, command.how, common); }, draw);
}

}  // namespace

Command add_mesh_sample(Arguments& group, Common& common) {
    auto command = std::make_shared<MeshSampleCommand>();
    Arguments& app = group.command("sample", "Draw points from the surface of a mesh");
    Option input = app.option("MESH", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    app.add(tasks::sample_mesh_fields(), &command->how);
    app.option("--picture", command->picture, "Draw mesh and points side by side into this .png");
    add_up(app, command->up);
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Colours and other attributes of the mesh are interpolated. --seed draws other points.\n\n"
        "Example:\n  stipple mesh sample bunny.ply -n 8192 --normals -o points.ply --picture points.png");
    return {&app, [command, &common] { return run_mesh_sample(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
