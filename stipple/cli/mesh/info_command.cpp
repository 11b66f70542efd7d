#include "stipple/cli/common/description.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

struct MeshInfoCommand {
    std::vector<std::string> inputs;
    InputFile input;  // for --from and --item
};

/// Columns of the table: a heading, and the key in the JSON of a mesh.
constexpr std::pair<const char*, const char*> kMeshColumns[] = {{"file", "path"},
                                                                {"vertices", "vertices"},
                                                                {"faces", "faces"},
                                                                {"watertight", "watertight"},
                                                                {"components", "components"},
                                                                {"boundary edges", "boundary_edges"},
                                                                {"non-manifold edges", "nonmanifold_edges"},
                                                                {"misoriented edges", "misoriented_edges"},
                                                                {"non-manifold vertices", "nonmanifold_vertices"},
                                                                {"area", "area"},
                                                                {"volume", "volume"}};

Result run_mesh_info(const MeshInfoCommand& command, const Common& common) {
    require_one_stdin(command.inputs);
    Result result;
    result.fields["inputs"] = command.inputs;
    result.fields["meshes"] = Json::array();
    Table table;
    for (const auto& [heading, key] : kMeshColumns) table.columns.emplace_back(heading);
    for_each_input(command.inputs.size(), "meshes", result, [&](size_t i) {
        const std::string& path = command.inputs[i];
        const Mesh mesh = load_faces({path, command.input.from, command.input.item}, common, result);
        const tasks::MeshFacts facts = about_file(path, [&] { return tasks::mesh_facts(mesh); });
        Description description;
        description.pairs = {{"vertices", grouped(facts.vertices)}, {"faces", grouped(facts.faces)}};
        description.fields = {{"path", path}};
        add_bounds(bounds_of(mesh.vertices), mesh.vertices.origin, description);
        description.fields.update(to_json(tasks::mesh_facts_fields(), &facts));
        result.text += (result.text.empty() ? "" : "\n") + printable(path) + "\n";
        for (auto& pair : pairs_of(facts)) description.pairs.push_back(std::move(pair));
        result.text += format_pairs(description.pairs, 2);
        std::vector<Json> row;
        for (const auto& [heading, key] : kMeshColumns)
            row.push_back(key == std::string_view("watertight") ? Json(facts.watertight ? "yes" : "no")
                                                                : description.fields.value(key));
        table.rows.push_back(std::move(row));
        result.fields["meshes"].push_back(std::move(description.fields));
    });
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> pairs_of(const tasks::MeshFacts& facts) {
    const geometry::MeshCheck& check = facts.check;
    std::vector<std::pair<std::string, std::string>> pairs = {
        {"watertight", facts.watertight ? "yes" : "no"},
        {"components", grouped(check.components)},
        {"Euler number", facts.watertight ? fmt::format("{}, genus {}", check.euler, check.components - check.euler / 2)
                                          : std::to_string(check.euler)},
        {"area", fmt::format("{:.6g}", check.area)},
        {"volume", facts.volume ? fmt::format("{:.6g}", *facts.volume) : "none: not closed and oriented"}};
    for (const tasks::MeshFault& fault : tasks::mesh_faults(check))
        pairs.emplace_back(fault.many, grouped(fault.count));
    return pairs;
}

Json value_at(const Json& fields, std::string_view key) {
    const size_t dot = key.find('.');
    if (dot == std::string_view::npos) return fields.value(key);
    return value_at(fields.value(key.substr(0, dot)), key.substr(dot + 1));
}

Command add_mesh_info(Arguments& group, Common& common) {
    auto command = std::make_shared<MeshInfoCommand>();
    Arguments& app = group.command("info", "Count what is wrong with meshes, measure area and volume");
    Option input = app.option("MESH", command->inputs, "Files; - is standard input");
    add_input_format(app, command->input);
    app.footer(
        "Edges, fans and components are those of the indices: vertices at one place are different.\n\n"
        "Example:\n  stipple mesh info part.stl\n  stipple mesh info *.off --table md");
    return {&app, [command, &common] { return run_mesh_info(*command, common); }, {input}};
}

}  // namespace stipple::cli
