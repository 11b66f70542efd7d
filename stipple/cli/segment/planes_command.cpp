#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/steps.h"
#include "stipple/tasks/label_scan.h"

namespace stipple::cli {
namespace {

/// Coordinates of maps are large: a normal of six digits would be off by decimetres there.
int digits_for(const PointCloud& cloud) {
    const Bounds bounds = bounds_of(cloud);
    double largest = 0;
    for (size_t axis = 0; axis < 3; ++axis)
        largest = std::max({largest, std::abs(bounds.min[axis]), std::abs(bounds.max[axis])});
    return largest > 1e4 ? 11 : 6;
}

Labelled planes_of(PointCloud& cloud, tasks::LabelPlaneOptions options, const Common& common) {
    options.planes.seed = common.seed;
    const tasks::PlaneLabels found = tasks::label_planes(cloud, options);
    Labelled labelled{.table = {{"plane", "points", "a", "b", "c", "d", "rms"}, {}}};
    StepReport& report = labelled.report;
    report.fields = to_json(tasks::plane_labels_fields(), &found);
    int64_t in_planes = 0;
    const int digits = digits_for(cloud);
    for (const auto& [plane, segment] : found.planes) {
        const auto& [a, b, c] = segment.normal;
        labelled.table.rows.push_back({plane, segment.points, a, b, c, segment.offset, segment.rms});
        in_planes += segment.points;
        report.text +=
            fmt::format("plane {}: {:.{}g} x {:+.{}g} y {:+.{}g} z {:+.{}g} = 0   {} points, rms {:.4g}\n", plane, a,
                        digits, b, digits, c, digits, segment.offset, digits + 3, grouped(segment.points), segment.rms);
    }
    if (found.planes.empty())
        report.warnings.push_back(
            fmt::format("no plane has {} points within {}", grouped(found.min_points), found.distance));
    report.what = fmt::format("{} of {} points in {} plane{}", grouped(in_planes), grouped(found.points),
                              found.planes.size(), found.planes.size() == 1 ? "" : "s");
    labelled.text = report.text;
    labelled.saved = report.what;
    return labelled;
}

}  // namespace

MakeStep add_planes_step(Arguments& app, const Common& common) {
    auto options = std::make_shared<tasks::LabelPlaneOptions>();
    app.add(tasks::label_plane_fields(), options.get());
    return [options, &common] {
        check_options(*options);
        Step step{.product = options->attribute};
        step.run = [options, &common](Mesh& mesh) { return planes_of(mesh.vertices, *options, common).report; };
        return step;
    };
}

Command add_planes(Arguments& root, Common& common) {
    auto command = std::make_shared<LabelCommand>();
    auto options = std::make_shared<tasks::LabelPlaneOptions>();
    Arguments& app = root.command("planes", "Find planes in a cloud");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    add_output(app, command->files.output).help("The cloud with the plane of each point; - is standard output");
    app.add(tasks::label_plane_fields(), options.get());
    add_label_options(app, *command, "planes");
    app.footer(
        "Example:\n  stipple planes room.ply --distance 0.02 -o planes.ply --picture planes.png\n"
        "  stipple planes roof.las --distance 0.1 --count 2 --min-points 500 --json");
    const auto run = [command, options, &common] {
        check_options(*options);
        return run_labels(*command, options->attribute, common,
                          [&](PointCloud& cloud) { return planes_of(cloud, *options, common); });
    };
    return {&app, run, {input}};
}

}  // namespace stipple::cli
