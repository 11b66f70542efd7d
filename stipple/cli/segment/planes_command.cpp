#include <chrono>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/terminal.h"
#include "stipple/geometry/planes.h"

namespace stipple::cli {
namespace {

struct PlanesOptions {
    InputFile input;
    OutputFile output;
    std::string attribute = "plane", picture, up = "z";
    double distance = 0;
    int64_t count = 0, min_points = 0;
    int trials = 0;
};

geometry::PlaneOptions plane_options(const PlanesOptions& options, const Common& common) {
    STIPPLE_REQUIRE(options.distance != 0, "how far may points be from their plane? Give --distance D");
    STIPPLE_REQUIRE(options.distance > 0 && std::isfinite(options.distance), "--distance must be above 0, got {}",
                    options.distance);
    STIPPLE_REQUIRE(options.min_points == 0 || options.min_points >= 3, "--min-points must be from 3, got {}",
                    options.min_points);
    STIPPLE_REQUIRE(options.trials >= 0, "--trials must be from 0, got {}", options.trials);
    STIPPLE_REQUIRE(!options.attribute.empty(), "--attribute must have a name");
    geometry::PlaneOptions wanted;
    wanted.distance = options.distance;
    wanted.count = options.count;
    wanted.trials = options.trials;
    wanted.seed = common.seed;
    return wanted;
}

Result run_planes(const PlanesOptions& options, const Common& common) {
    geometry::PlaneOptions wanted = plane_options(options, common);
    io::Format format{};
    if (!options.output.path.empty()) format = require_output(options.output, common, options.attribute);
    require_picture(options.picture, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    Mesh mesh = load_with_progress(options.input.path, options.input.from, options.input.item, common, result.warnings);
    PointCloud& cloud = mesh.vertices;
    wanted.min_points =
        options.min_points > 0 ? options.min_points : std::max<int64_t>(3, (bounds_of(cloud).finite + 99) / 100);
    const auto begin = std::chrono::steady_clock::now();
    const geometry::PlaneSegments found =
        about_file(options.input.path, [&] { return geometry::find_planes(cloud, wanted); });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    Table table{{"plane", "points", "a", "b", "c", "d", "rms"}, {}};
    result.fields["points"] = cloud.size();
    result.fields["distance"] = options.distance;
    result.fields["min_points"] = wanted.min_points;
    result.fields["seconds"] = elapsed.count();
    result.fields["planes"] = Json::array();
    int64_t in_planes = 0;
    // Coordinates of maps are large: a normal of six digits would be off by decimetres there.
    const Bounds bounds = bounds_of(cloud);
    double largest = 0;
    for (size_t axis = 0; axis < 3; ++axis)
        largest = std::max({largest, std::abs(bounds.min[axis]), std::abs(bounds.max[axis])});
    const int digits = largest > 1e4 ? 11 : 6;
    for (size_t i = 0; i < found.planes.size(); ++i) {
        const geometry::PlaneSegment& plane = found.planes[i];
        const geometry::Vector3& n = plane.normal;
        result.fields["planes"].push_back(
            {{"plane", i}, {"points", plane.points}, {"normal", n}, {"offset", plane.offset}, {"rms", plane.rms}});
        table.rows.push_back({i, plane.points, n[0], n[1], n[2], plane.offset, plane.rms});
        in_planes += plane.points;
        result.text +=
            fmt::format("plane {}: {:.{}g} x {:+.{}g} y {:+.{}g} z {:+.{}g} = 0   {} points, rms {:.4g}\n", i, n[0],
                        digits, n[1], digits, n[2], digits, plane.offset, digits + 3, grouped(plane.points), plane.rms);
    }
    if (found.planes.empty())
        result.warnings.push_back(fmt::format("{}: no plane has {} points within {}", options.input.path,
                                              grouped(wanted.min_points), options.distance));
    const std::string what = fmt::format("{} of {} points in {} plane{}", grouped(in_planes), grouped(cloud.size()),
                                         found.planes.size(), found.planes.size() == 1 ? "" : "s");
    put_attribute(cloud.attributes, label_attribute(options.attribute, found.labels.span()));
    if (!options.output.path.empty()) save_output(mesh, options.output, format, what, common, result);
    save_picture(
        options.picture, [&] { return draw_labels(cloud, found.labels.span(), what, options.up); }, common, result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_planes(Arguments& root, Common& common) {
    auto options = std::make_shared<PlanesOptions>();
    Arguments& app = root.command("planes", "Find planes in a cloud");
    Option input = app.option("INPUT", options->input.path, "The file; - is standard input");
    add_output(app, options->output).help("The cloud with the plane of each point; - is standard output");
    app.option("--distance", options->distance, "Of points from their plane, at most").text("D").no_default();
    app.option("--count", options->count, "Planes wanted, at most; 0: all that are large enough").from_zero();
    app.option("--min-points", options->min_points, "Of a plane; 0: a hundredth of the cloud").from_zero();
    app.option("--trials", options->trials, "Planes that are tried for each; 0: until sure");
    app.option("--attribute", options->attribute, "Name of the attribute: from 0, -1 for none");
    app.option("--picture", options->picture, "Draw the planes in colours into this .png");
    add_up(app, options->up);
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Example:\n  stipple planes room.ply --distance 0.02 -o planes.ply --picture planes.png\n"
        "  stipple planes roof.las --distance 0.1 --count 2 --min-points 500 --json");
    return {&app, [options, &common] { return run_planes(*options, common); }, {input}};
}

}  // namespace stipple::cli
