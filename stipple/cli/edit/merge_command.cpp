#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/io/las.h"
#include "stipple/tasks/edit.h"

namespace stipple::cli {
namespace {

struct MergeCommand {
    std::vector<std::string> inputs;
    std::string from;
    OutputFile output;
    tasks::MergeOptions how;
};

/// Whether all are LAS files of one point format and size of records: then these pass as they are.
bool have_one_layout(std::vector<CloudInput>& inputs) {
    std::shared_ptr<const LasFacts> first;
    for (CloudInput& input : inputs) {
        const std::shared_ptr<const LasFacts> las = input.is_streamed() ? input.first().facts.las : nullptr;
        if (!first) first = las;
        if (!las || !io::have_same_records(*first, *las)) return false;
    }
    return true;
}

Result run_merge(const MergeCommand& command, const Common& common) {
    const std::string& source_id = command.how.source_id;
    require_one_stdin(command.inputs);
    STIPPLE_REQUIRE(command.inputs.size() <= 65536 || source_id.empty(), "--source-id counts to 65,536 files");
    CloudOutput output(command.output, common, source_id);
    Result result;
    result.fields["inputs"] = command.inputs;
    std::vector<CloudInput> inputs;
    for (const std::string& path : command.inputs) inputs.emplace_back(InputFile{path, command.from}, common, result);
    // Two rounds: what all files hold, then their points.
    std::vector<geometry::CloudSchema> schemas;
    Bounds all;
    std::optional<std::array<double, 3>> origin;
    bool same_origin = true, same_system = true;
    std::optional<FileFacts> facts;
    const bool is_streamed =
        output.format() == io::Format::las &&
        std::all_of(inputs.begin(), inputs.end(), [](const CloudInput& input) { return input.is_streamed(); });
    const bool passes_records = is_streamed && source_id.empty() && have_one_layout(inputs);
    if (passes_records)
        for (CloudInput& input : inputs) input.want({.records = true});
    for (CloudInput& input : inputs) {
        schemas.push_back({input.path(), 0, {}});
        input.for_each([&](const Mesh& piece) {
            const PointCloud& cloud = piece.vertices;
            STIPPLE_REQUIRE(source_id.empty() || !find(cloud.attributes, source_id),
                            "has an attribute {} already: choose another name for --source-id", source_id);
            schemas.back().add(cloud);
            if (!origin) origin = cloud.origin;
            same_origin = same_origin && cloud.origin == *origin;
            extend(all, bounds_of(cloud));
            if (!facts) facts = cloud.facts;
            same_system = same_system && facts->coordinate_system == cloud.facts.coordinate_system;
        });
    }
    if (is_streamed && !same_system) {
        result.warnings.push_back(fmt::format("{}: the coordinate systems differ, none is kept", command.output.path));
        facts->coordinate_system.clear();
    }
    if (is_streamed && facts && facts->grid) {
        facts->grid = io::grid_for(all, *facts->grid);  // of the first file, or moved
        output.set_grid(*facts->grid);
    }
    const geometry::MergePlan plan = geometry::plan_merge(schemas, command.how.missing);
    Table table{{"source", "file", "points"}, {}};
    tasks::Merged merged;
    for (size_t source = 0; source < inputs.size(); ++source) {
        int64_t points = 0;
        inputs[source].for_each([&](const Mesh& piece) {
            Mesh part;
            part.vertices = geometry::fitted(piece.vertices, plan, schemas[source].color_maximum());
            part.triangles = piece.triangles.clone();
            for (const Attribute& attribute : piece.face_attributes) part.face_attributes.push_back(attribute.clone());
            if (!source_id.empty())
                part.vertices.attributes.push_back(tasks::source_ids(source_id, piece.vertices.size(), source));
            if (is_streamed) {
                const std::optional<FileFacts::Grid> own = piece.vertices.facts.grid;
                part.vertices.facts = *facts;
                if (passes_records) part.vertices.facts.grid = own;  // which their integers are on
            }
            points += piece.vertices.size();
            output.add(std::move(part));
        });
        merged.files.push_back({command.inputs[source], points, static_cast<int64_t>(source)});
        table.rows.push_back({source, command.inputs[source], points});
    }
    constexpr double kCoarse = 1e-3;
    if (!is_streamed && !same_origin && tasks::spacing_of_merged(all) > kCoarse)
        result.warnings.push_back(fmt::format("{}: the files lie so far apart that coordinates are rounded to {:.2g}",
                                              command.output.path, tasks::spacing_of_merged(all)));
    for (const auto& column : plan.columns) merged.attributes.push_back(column.name);
    merged.points = output.points();
    result.fields.update(to_json(tasks::merged_fields(), &merged));
    output.finish(fmt::format("{} points of {} files", grouped(output.points()), command.inputs.size()),
                  "the files have no points", result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_merge(Arguments& root, Common& common) {
    auto command = std::make_shared<MergeCommand>();
    Arguments& app = root.command("merge", "Make one cloud or mesh of many");
    Option input = app.option("INPUT", command->inputs, "Files; - is standard input");
    Option output = add_output(app, command->output);
    app.add(tasks::merge_fields(), &command->how);
    add_output_format(app, command->output);
    app.option("--from", command->from, "Format of the inputs, when name and content do not tell");
    app.footer(
        "Example:\n  stipple merge north.las south.las -o all.las --source-id flight\n"
        "  stipple merge scans/*.ply -o all.ply --missing fill");
    return {&app, [command, &common] { return run_merge(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
