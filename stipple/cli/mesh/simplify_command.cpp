#include <cmath>

#include "stipple/cli/common/table.h"
#include "stipple/cli/mesh/commands.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/decimate.h"

namespace stipple::cli {
namespace {

struct MeshSimplifyOptions {
    InputFile input;
    OutputFile output;
    int64_t faces = 0;
    double ratio = 0;
};

/// How far the vertices of a mesh are from the surface of another: the greatest, and the root of the mean square.
std::pair<double, double> deviation(const Mesh& from, const Mesh& to) {
    Array<float, 1> distances({from.vertices.size()});
    geometry::ClosestPoints found;
    found.distances = distances.view();
    geometry::closest_point(geometry::MeshIndex(geometry::MeshView(to.vertices.positions.view(), to.triangles.view())),
                            from.vertices.positions.view(), found);
    double most = 0, squares = 0;
    int64_t count = 0;
    for (const float d : distances.span()) {
        if (!std::isfinite(d)) continue;
        most = std::max(most, double{d});
        squares += double{d} * d;
        ++count;
    }
    return {most, count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0};
}

Result run_simplify(const MeshSimplifyOptions& options, const Common& common) {
    STIPPLE_REQUIRE((options.faces == 0) != (options.ratio == 0), "how many faces? Give --faces N or --ratio R");
    STIPPLE_REQUIRE(options.ratio == 0 || (options.ratio > 0 && options.ratio <= 1),
                    "--ratio must be above 0, to 1, got {}", options.ratio);
    const io::Format format = require_output(options.output, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    const Mesh mesh = load_faces(options.input, common, result);
    const int64_t wanted = options.faces > 0
                               ? options.faces
                               : std::max<int64_t>(1, std::llround(options.ratio * static_cast<double>(mesh.faces())));
    geometry::MeshPart part = about_file(options.input.path, [&] { return geometry::decimate(mesh, wanted); });
    part.mesh.vertices.facts = mesh.vertices.facts;
    const Mesh& simple = part.mesh;
    if (simple.faces() > wanted)
        result.warnings.push_back(fmt::format("{}: {} faces are left, fewer would break the surface",
                                              options.input.path, grouped(simple.faces())));
    const auto [most, rms] = simple.faces() > 0 ? deviation(mesh, simple) : std::pair(0.0, 0.0);
    result.fields["faces_before"] = mesh.faces();
    result.fields["faces"] = simple.faces();
    result.fields["vertices"] = simple.vertices.size();
    result.fields["deviation"] = {{"max", most}, {"rms", rms}};
    save_output(simple, options.output, format,
                fmt::format("{} of {} faces; old vertices are off by {:.3g} RMS, {:.3g} at most",
                            grouped(simple.faces()), grouped(mesh.faces()), rms, most),
                common, result);
    if (!common.table.empty())
        result.text = format_table(
            {{"file", "faces before", "faces", "vertices", "rms", "max", "written"},
             {{options.output.path, mesh.faces(), simple.faces(), simple.vertices.size(), rms, most, !common.dry_run}}},
            common.table);
    return result;
}

}  // namespace

Command add_mesh_simplify(Arguments& group, Common& common) {
    auto options = std::make_shared<MeshSimplifyOptions>();
    Arguments& app = group.command("simplify", "Fewer faces for nearly the same surface");
    Option input = app.option("INPUT", options->input.path, "The mesh; - is standard input");
    Option output = add_output(app, options->output);
    app.option("--faces", options->faces, "Faces wanted").from_zero().text("N").no_default();
    app.option("--ratio", options->ratio, "Faces wanted, of those there are: 0.1").text("R").no_default();
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Example:\n  stipple mesh simplify statue.ply --faces 20000 -o light.ply\n"
        "  stipple mesh simplify part.stl --ratio 0.1 -o part.obj");
    return {&app, [options, &common] { return run_simplify(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
