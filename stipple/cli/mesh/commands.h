#pragma once
// The commands of `stipple mesh`, and what they share.

#include "stipple/cli/common/files.h"
#include "stipple/cli/common/table.h"
#include "stipple/tasks/mesh_facts.h"

namespace stipple::cli {

Command add_mesh_info(Arguments& group, Common& common);
Command add_mesh_sample(Arguments& group, Common& common);
Command add_mesh_watertight(Arguments& group, Common& common);
Command add_mesh_distance(Arguments& group, Common& common);
Command add_mesh_rays(Arguments& group, Common& common);
Command add_mesh_surface(Arguments& group, Common& common);
Command add_mesh_simplify(Arguments& group, Common& common);

/// Columns of a table: a heading, and the key in JSON.
using Columns = std::vector<std::pair<std::string, std::string>>;

/// Facts by name, for people, without the size.
std::vector<std::pair<std::string, std::string>> pairs_of(const tasks::MeshFacts& facts);

/// A command that makes one thing of one mesh or cloud.
struct MeshFiles {
    InputFile input;
    OutputFile output;
};
/// Holds the mesh that a command has made, and what is said about it.
struct MadeOfMesh {
    Mesh mesh;
    Json fields;            // for --json
    std::string summary;    // in the line of the output
    Json cells = {};        // of the table, where they are not among the fields
    std::string text = {};  // for people, above that line
};

/// The value of a key, "deviation.rms" of an object within.
Json value_at(const Json& fields, std::string_view key);

/// Checks the output, then loads (load_faces), makes, writes and reports. Errors of `make` are put at the path of the
/// input. `after`, where given, is called with the input, what was made and the result when it is written: for a
/// picture. The table has a row of `columns`: headings with keys of the cells or the fields; "file", "format" and
/// "written" are those of the output. Without columns the command has a table of its own.
template <class Load, class Make, class After>
Result run_mesh_command(const MeshFiles& files, const Common& common, const Columns& columns, const Load& load,
                        const Make& make, const After& after) {
    const io::Format format = require_output(files.output, common);
    Result result;
    result.fields["inputs"] = Json::array({files.input.path});
    const auto input = load(files.input, common, result);
    MadeOfMesh made = about_file(files.input.path, [&]() -> MadeOfMesh { return make(input, result); });
    result.fields.update(made.fields);
    result.text = made.text;
    save_output(made.mesh, files.output, format, made.summary, common, result);
    after(input, made, result);
    if (common.table.empty() || columns.empty()) return result;
    made.cells["file"] = files.output.path;
    made.cells["format"] = io::info_of(format).name;
    made.cells["written"] = !common.dry_run;
    made.fields.update(made.cells);
    Table table{{}, {{}}};
    for (const auto& [heading, key] : columns) {
        table.columns.push_back(heading);
        table.rows[0].push_back(value_at(made.fields, key));
    }
    result.text = format_table(table, common.table);
    return result;
}
template <class Load, class Make>
Result run_mesh_command(const MeshFiles& files, const Common& common, const Columns& columns, const Load& load,
                        const Make& make) {
    return run_mesh_command(files, common, columns, load, make, [](const auto&...) {});
}

}  // namespace stipple::cli
