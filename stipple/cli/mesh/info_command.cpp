#include "stipple/cli/common/description.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

struct MeshInfoOptions {
    std::vector<std::string> inputs;
    InputFile input;  // for --from and --item
};

Result run_mesh_info(const MeshInfoOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    Result result;
    result.fields["inputs"] = options.inputs;
    result.fields["meshes"] = Json::array();
    Table table{{"file", "vertices", "faces", "watertight", "components", "boundary edges", "non-manifold edges",
                 "misoriented edges", "non-manifold vertices", "area", "volume"},
                {}};
    for_each_input(options.inputs.size(), "meshes", result, [&](size_t i) {
        const std::string& path = options.inputs[i];
        const Mesh mesh = load_faces({path, options.input.from, options.input.item}, common, result);
        const geometry::MeshCheck check = about_file(path, [&] { return geometry::check_mesh(mesh); });
        Description description;
        description.pairs = {{"vertices", grouped(mesh.vertices.size())}, {"faces", grouped(mesh.faces())}};
        description.fields = {{"path", path}, {"vertices", mesh.vertices.size()}, {"faces", mesh.faces()}};
        add_bounds(bounds_of(mesh.vertices), mesh.vertices.origin, description);
        const Json fields = check_json(mesh, check);
        description.fields.update(fields);
        result.text += (result.text.empty() ? "" : "\n") + printable(path) + "\n";
        for (auto& pair : check_pairs(mesh, check)) description.pairs.push_back(std::move(pair));
        result.text += format_pairs(description.pairs, 2);
        table.rows.push_back({path, mesh.vertices.size(), mesh.faces(), check.is_watertight(mesh) ? "yes" : "no",
                              check.components, check.boundary_edges, check.nonmanifold_edges, check.misoriented_edges,
                              check.nonmanifold_vertices, check.area, fields.value("volume")});
        result.fields["meshes"].push_back(std::move(description.fields));
    });
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_mesh_info(Arguments& group, Common& common) {
    auto options = std::make_shared<MeshInfoOptions>();
    Arguments& app = group.command("info", "Count what is wrong with meshes, measure area and volume");
    Option input = app.option("MESH", options->inputs, "Files; - is standard input");
    add_input_format(app, options->input);
    app.footer(
        "Edges, fans and components are those of the indices: vertices at one place are different.\n\n"
        "Example:\n  stipple mesh info part.stl\n  stipple mesh info *.off --table md");
    return {&app, [options, &common] { return run_mesh_info(*options, common); }, {input}};
}

}  // namespace stipple::cli
