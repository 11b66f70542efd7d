#include <chrono>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/planes.h"

namespace stipple::cli {
namespace {

struct PlanesOptions {
    std::string attribute = "plane";
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

Labelled label_planes(PointCloud& cloud, const PlanesOptions& options, geometry::PlaneOptions wanted) {
    wanted.min_points =
        options.min_points > 0 ? options.min_points : std::max<int64_t>(3, (bounds_of(cloud).finite + 99) / 100);
    const auto begin = std::chrono::steady_clock::now();
    const geometry::PlaneSegments found = geometry::find_planes(cloud, wanted);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    Labelled labelled{.table = {{"plane", "points", "a", "b", "c", "d", "rms"}, {}}};
    StepReport& report = labelled.report;
    report.fields["points"] = cloud.size();
    report.fields["distance"] = options.distance;
    report.fields["min_points"] = wanted.min_points;
    report.fields["seconds"] = elapsed.count();
    report.fields["planes"] = Json::array();
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
        report.fields["planes"].push_back(
            {{"plane", i}, {"points", plane.points}, {"normal", n}, {"offset", plane.offset}, {"rms", plane.rms}});
        labelled.table.rows.push_back({i, plane.points, n[0], n[1], n[2], plane.offset, plane.rms});
        in_planes += plane.points;
        report.text +=
            fmt::format("plane {}: {:.{}g} x {:+.{}g} y {:+.{}g} z {:+.{}g} = 0   {} points, rms {:.4g}\n", i, n[0],
                        digits, n[1], digits, n[2], digits, plane.offset, digits + 3, grouped(plane.points), plane.rms);
    }
    if (found.planes.empty())
        report.warnings.push_back(
            fmt::format("no plane has {} points within {}", grouped(wanted.min_points), options.distance));
    report.what = fmt::format("{} of {} points in {} plane{}", grouped(in_planes), grouped(cloud.size()),
                              found.planes.size(), found.planes.size() == 1 ? "" : "s");
    labelled.text = report.text;
    labelled.saved = report.what;
    put_attribute(cloud.attributes, label_attribute(options.attribute, found.labels.span()));
    return labelled;
}

std::shared_ptr<PlanesOptions> add_planes_options(Arguments& app) {
    auto options = std::make_shared<PlanesOptions>();
    app.option("--distance", options->distance, "Of points from their plane, at most").text("D").no_default();
    app.option("--count", options->count, "Planes wanted, at most; 0: all that are large enough").from_zero();
    app.option("--min-points", options->min_points, "Of a plane; 0: a hundredth of the cloud").from_zero();
    app.option("--trials", options->trials, "Planes that are tried for each; 0: until sure");
    app.option("--attribute", options->attribute, "Name of the attribute: from 0, -1 for none");
    return options;
}

}  // namespace

MakeStep add_planes_step(Arguments& app, const Common& common) {
    return [options = add_planes_options(app), &common] {
        Step step{.product = options->attribute};
        step.run = [options, wanted = plane_options(*options, common)](Mesh& mesh) {
            return label_planes(mesh.vertices, *options, wanted).report;
        };
        return step;
    };
}

Command add_planes(Arguments& root, Common& common) {
    auto command = std::make_shared<LabelCommand>();
    Arguments& app = root.command("planes", "Find planes in a cloud");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    add_output(app, command->files.output).help("The cloud with the plane of each point; - is standard output");
    const auto options = add_planes_options(app);
    add_label_options(app, *command, "planes");
    app.footer(
        "Example:\n  stipple planes room.ply --distance 0.02 -o planes.ply --picture planes.png\n"
        "  stipple planes roof.las --distance 0.1 --count 2 --min-points 500 --json");
    const auto run = [command, options, &common] {
        const geometry::PlaneOptions wanted = plane_options(*options, common);
        return run_labels(*command, options->attribute, common,
                          [&](PointCloud& cloud) { return label_planes(cloud, *options, wanted); });
    };
    return {&app, run, {input}};
}

}  // namespace stipple::cli
