#include <algorithm>
#include <cmath>

#include "stipple/cli/common/table.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/geometry/mesh_distance.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/watertight.h"

namespace stipple::cli {
namespace {

struct MeshWatertightOptions {
    InputFile input;
    OutputFile output;
    geometry::WatertightOptions conversion;
    bool no_project = false;
    double ratio = 0;

    MeshWatertightOptions() { conversion.tolerance = 0.05; }
};

/// At most so many faces are asked for; 0 leaves it to the tolerance.
int64_t faces_wanted(const Mesh& mesh, const MeshWatertightOptions& options) {
    if (options.ratio == 0) return options.conversion.faces;
    return std::max<int64_t>(1, std::llround(std::min(1e15, options.ratio * static_cast<double>(mesh.faces()))));
}

Mesh convert(const Mesh& mesh, const MeshWatertightOptions& options) {
    geometry::WatertightOptions conversion = options.conversion;
    conversion.project = !options.no_project;
    conversion.faces = faces_wanted(mesh, options);
    Mesh solid = geometry::watertight(mesh, conversion);
    solid.vertices.origin = mesh.vertices.origin;
    return solid;
}

/// The counts of both meshes side by side.
Table comparison(const Mesh& before, const geometry::MeshCheck& check_before, const Mesh& after,
                 const geometry::MeshCheck& check_after) {
    Table table{{"", "before", "after"}, {}};
    table.rows = {{"vertices", grouped(before.vertices.size()), grouped(after.vertices.size())},
                  {"faces", grouped(before.faces()), grouped(after.faces())}};
    const auto left = check_pairs(before, check_before), right = check_pairs(after, check_after);
    for (size_t i = 0; i < left.size(); ++i) table.rows.push_back({left[i].first, left[i].second, right[i].second});
    return table;
}

/// Adds how far each surface is from the other.
void add_distances(const Mesh& mesh, const Mesh& solid, Table& table, Result& result) {
    const auto add = [&](const char* name, const char* field, const Mesh& from, const Mesh& to) {
        if (geometry::surface_area(from) == 0) return;  // segments and points: nothing to sample
        const geometry::MeshDistance d = geometry::mesh_distance(from, to);
        table.rows.push_back({name, fmt::format("mean {:.3g}", d.mean), fmt::format("largest {:.3g}", d.largest)});
        result.fields[field] = {{"mean", d.mean}, {"rms", d.rms}, {"largest", d.largest}};
    };
    add("from input to result", "input_to_result", mesh, solid);
    add("from result to input", "result_to_input", solid, mesh);
}

void require_ranges(const MeshWatertightOptions& given) {
    const geometry::WatertightOptions& options = given.conversion;
    STIPPLE_REQUIRE(options.tolerance >= 0 && options.tolerance <= 1, "--tolerance must be 0 to 1, got {}",
                    options.tolerance);
    STIPPLE_REQUIRE(given.ratio >= 0 && std::isfinite(given.ratio), "--ratio must be above 0, got {}", given.ratio);
    STIPPLE_REQUIRE(given.ratio == 0 || options.faces == 0, "--faces and --ratio: give one of them");
    STIPPLE_REQUIRE(options.resolution >= 2 && options.resolution <= 2048, "--resolution must be 2 to 2048, got {}",
                    options.resolution);
    STIPPLE_REQUIRE(options.cap_holes <= options.resolution, "--cap-holes must be 0 to the resolution, {}, got {}",
                    options.resolution, options.cap_holes);
    STIPPLE_REQUIRE(options.cap_holes == 0 || !options.keep_inner, "--cap-holes fills what --keep-inner would keep");
    STIPPLE_REQUIRE(options.offset >= 0.01 && options.offset <= 0.5, "--offset must be 0.01 to 0.5, got {}",
                    options.offset);
}

Result run_watertight(const MeshWatertightOptions& options, const Common& common) {
    require_ranges(options);
    const io::Format format = require_output(options.output, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    const Mesh mesh = load_faces(options.input, common, result);
    if (!mesh.vertices.attributes.empty() || !mesh.face_attributes.empty())
        result.warnings.push_back(fmt::format("{}: the new surface has no attributes", options.input.path));
    const geometry::MeshCheck before = geometry::check_mesh(mesh);
    const Mesh solid = about_file(options.input.path, [&] { return convert(mesh, options); });
    const geometry::MeshCheck after = geometry::check_mesh(solid);
    if (!after.is_watertight(solid))
        throw Error(ErrorCode::check_failed, Place{options.input.path},
                    fmt::format("the result is not watertight ({}): nothing is written", watertight_text(solid, after)),
                    "try another --resolution");
    const int64_t wanted = faces_wanted(mesh, options);
    if (wanted > 0 && solid.faces() > wanted)
        result.warnings.push_back(fmt::format("{}: {} faces are left, fewer would break the surface",
                                              options.input.path, grouped(solid.faces())));
    const double hollow = options.conversion.keep_inner ? 0 : geometry::hollow_share(mesh, solid);
    constexpr double kHollow = 0.1;
    if (hollow > kHollow)
        result.warnings.push_back(fmt::format(
            "{}: hollow: {:.0f} % of what the input encloses is outside of the result, a shell with two walls, because "
            "holes let the outside in: close them with --cap-holes N, N voxels being wider than they are, or take a "
            "lower --resolution",
            options.input.path, 100 * hollow));
    result.fields["hollow"] = hollow;
    result.fields["before"] = check_json(mesh, before);
    result.fields["after"] = check_json(solid, after);
    for (const auto& [key, shown] : {std::pair("before", &mesh), std::pair("after", &solid)}) {
        result.fields[key]["vertices"] = shown->vertices.size();
        result.fields[key]["faces"] = shown->faces();
    }
    Table table = comparison(mesh, before, solid, after);
    add_distances(mesh, solid, table, result);
    result.text = format_table(table, "") + "\n";
    save_output(solid, options.output, format,
                fmt::format("{} vertices, {} faces", grouped(solid.vertices.size()), grouped(solid.faces())), common,
                result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_mesh_watertight(Arguments& group, Common& common) {
    auto options = std::make_shared<MeshWatertightOptions>();
    geometry::WatertightOptions& conversion = options->conversion;
    Arguments& app = group.command("watertight", "Close any triangle soup: manifold, oriented, without holes");
    Option input = app.option("MESH", options->input.path, "The file; - is standard input");
    Option output = add_output(app, options->output);
    app.option("--resolution", conversion.resolution, "Voxels along the longest side, 2 to 2048");
    app.option("--cap-holes", conversion.cap_holes, "Close gaps narrower than this many voxels; 0 closes none")
        .from_zero();
    app.option("--offset", conversion.offset, "Voxels between surface and input; a sheet becomes twice as thick");
    app.option("--tolerance", conversion.tolerance, "Voxels that leaving out faces may cost; 0 leaves out none");
    app.option("--faces", conversion.faces, "At most so many faces, whatever that costs")
        .from_zero()
        .text("N")
        .no_default();
    app.option("--ratio", options->ratio, "The same, as a multiple of the input's faces: 2").text("R").no_default();
    app.flag("--keep-inner", conversion.keep_inner, "Keep walls of cavities that the outside does not reach");
    app.flag("--no-project", options->no_project, "Leave the steps of the voxels");
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Open surfaces become thin shells. What is written has been checked; stipple mesh info counts the same.\n\n"
        "Example:\n  stipple mesh watertight chair.obj --resolution 256 -o solid.ply");
    return {&app, [options, &common] { return run_watertight(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
