#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/geometry/merge_clouds.h"
#include "stipple/io/las.h"

namespace stipple::cli {
namespace {

struct MergeOptions {
    std::vector<std::string> inputs;
    OutputFile output;
    std::string source_id, missing = "error", from;
};

/// How far apart two numbers of float32 are at the largest distance from the origin that the merged cloud would have:
/// files far from each other share one origin.
double spacing_of_merged(const Bounds& all) {
    const std::array<double, 3> origin = choose_origin(all.min, all.max);
    double spacing = 0;
    for (size_t axis = 0; axis < 3 && all.finite > 0; ++axis) {
        const double farthest =
            std::max(std::abs(all.min[axis] - origin[axis]), std::abs(all.max[axis] - origin[axis]));
        spacing = std::max(spacing, farthest * 0x1p-23);
    }
    return spacing;
}

Attribute source_ids(const std::string& name, int64_t rows, size_t source) {
    Attribute ids(name, DType::u16, rows, 1);
    std::fill_n(ids.as<uint16_t>().data(), rows, static_cast<uint16_t>(source));
    return ids;
}

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

Result run_merge(const MergeOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    STIPPLE_REQUIRE(options.inputs.size() <= 65536 || options.source_id.empty(), "--source-id counts to 65,536 files");
    CloudOutput output(options.output, common, options.source_id);
    Result result;
    result.fields["inputs"] = options.inputs;
    std::vector<CloudInput> inputs;
    for (const std::string& path : options.inputs) inputs.emplace_back(InputFile{path, options.from}, common, result);
    // Two rounds: what all files hold, then their points.
    std::vector<geometry::CloudSchema> schemas;
    Bounds all;
    std::optional<std::array<double, 3>> origin;
    bool same_origin = true, same_system = true;
    std::optional<FileFacts> facts;
    const bool is_streamed =
        output.format() == io::Format::las &&
        std::all_of(inputs.begin(), inputs.end(), [](const CloudInput& input) { return input.is_streamed(); });
    const bool passes_records = is_streamed && options.source_id.empty() && have_one_layout(inputs);
    if (passes_records)
        for (CloudInput& input : inputs) input.want({.records = true});
    for (CloudInput& input : inputs) {
        schemas.push_back({input.path(), 0, {}});
        input.for_each([&](const Mesh& piece) {
            const PointCloud& cloud = piece.vertices;
            STIPPLE_REQUIRE(options.source_id.empty() || !find(cloud.attributes, options.source_id),
                            "has an attribute {} already: choose another name for --source-id", options.source_id);
            schemas.back().add(cloud);
            if (!origin) origin = cloud.origin;
            same_origin = same_origin && cloud.origin == *origin;
            extend(all, bounds_of(cloud));
            if (!facts) facts = cloud.facts;
            same_system = same_system && facts->coordinate_system == cloud.facts.coordinate_system;
        });
    }
    if (is_streamed && !same_system) {
        result.warnings.push_back(fmt::format("{}: the coordinate systems differ, none is kept", options.output.path));
        facts->coordinate_system.clear();
    }
    if (is_streamed && facts && facts->grid) {
        facts->grid = io::grid_for(all, *facts->grid);  // of the first file, or moved
        output.set_grid(*facts->grid);
    }
    const auto missing = options.missing == "fill"   ? geometry::MissingAttributes::fill
                         : options.missing == "drop" ? geometry::MissingAttributes::drop
                                                     : geometry::MissingAttributes::refuse;
    const geometry::MergePlan plan = geometry::plan_merge(schemas, missing);
    Table table{{"source", "file", "points"}, {}};
    result.fields["files"] = Json::array();
    for (size_t source = 0; source < inputs.size(); ++source) {
        int64_t points = 0;
        inputs[source].for_each([&](const Mesh& piece) {
            Mesh part;
            part.vertices = geometry::fitted(piece.vertices, plan, schemas[source].color_maximum());
            part.triangles = piece.triangles.clone();
            for (const Attribute& attribute : piece.face_attributes) part.face_attributes.push_back(attribute.clone());
            if (!options.source_id.empty())
                part.vertices.attributes.push_back(source_ids(options.source_id, piece.vertices.size(), source));
            if (is_streamed) {
                const std::optional<FileFacts::Grid> own = piece.vertices.facts.grid;
                part.vertices.facts = *facts;
                if (passes_records) part.vertices.facts.grid = own;  // which their integers are on
            }
            points += piece.vertices.size();
            output.add(std::move(part));
        });
        result.fields["files"].push_back({{"path", options.inputs[source]}, {"points", points}, {"source", source}});
        table.rows.push_back({source, options.inputs[source], points});
    }
    constexpr double kCoarse = 1e-3;
    if (!is_streamed && !same_origin && spacing_of_merged(all) > kCoarse)
        result.warnings.push_back(fmt::format("{}: the files lie so far apart that coordinates are rounded to {:.2g}",
                                              options.output.path, spacing_of_merged(all)));
    Json columns = Json::array();
    for (const auto& column : plan.columns) columns.push_back(column.name);
    result.fields["points"] = output.points();
    result.fields["attributes"] = columns;
    output.finish(fmt::format("{} points of {} files", grouped(output.points()), options.inputs.size()),
                  "the files have no points", result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_merge(Arguments& root, Common& common) {
    auto options = std::make_shared<MergeOptions>();
    Arguments& app = root.command("merge", "Make one cloud or mesh of many");
    Option input = app.option("INPUT", options->inputs, "Files; - is standard input");
    Option output = add_output(app, options->output);
    app.option("--source-id", options->source_id, "Add an attribute: the file of each point, from 0").text("NAME");
    app.option("--missing", options->missing, "Attributes that some files lack; fill: with 0, or NaN")
        .one_of({"error", "fill", "drop"})
        .text("error|fill|drop");
    add_output_format(app, options->output);
    app.option("--from", options->from, "Format of the inputs, when name and content do not tell");
    app.footer(
        "Example:\n  stipple merge north.las south.las -o all.las --source-id flight\n"
        "  stipple merge scans/*.ply -o all.ply --missing fill");
    return {&app, [options, &common] { return run_merge(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
