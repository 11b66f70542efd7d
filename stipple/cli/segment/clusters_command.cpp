#include <chrono>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/clusters.h"

namespace stipple::cli {
namespace {

struct ClustersOptions {
    std::string attribute = "cluster";
    double radius = 0;
    int64_t min_points = 10;
};

void require_sense(const ClustersOptions& options) {
    STIPPLE_REQUIRE(options.radius != 0, "how far are neighbours at most? Give --radius R");
    STIPPLE_REQUIRE(options.radius > 0 && std::isfinite(options.radius), "--radius must be above 0, got {}",
                    options.radius);
    STIPPLE_REQUIRE(options.min_points >= 1, "--min-points must be from 1, got {}", options.min_points);
    STIPPLE_REQUIRE(!options.attribute.empty(), "--attribute must have a name");
}

Labelled label_clusters(PointCloud& cloud, const ClustersOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    const geometry::DensityClusters found =
        geometry::density_clusters(cloud.positions.view(), options.radius, options.min_points);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    std::vector<int64_t> sizes(static_cast<size_t>(found.count), 0);
    int64_t noise = 0;
    for (const int32_t label : found.labels.span()) ++(label < 0 ? noise : sizes[static_cast<size_t>(label)]);
    Labelled labelled{.table = {{"cluster", "points"}, {}}, .saved = fmt::format("{} points", grouped(cloud.size()))};
    StepReport& report = labelled.report;
    report.fields["points"] = cloud.size();
    report.fields["radius"] = options.radius;
    report.fields["min_points"] = options.min_points;
    report.fields["seconds"] = elapsed.count();
    report.fields["clusters"] = found.count;
    report.fields["noise"] = noise;
    report.fields["sizes"] = sizes;
    report.what = fmt::format("{} cluster{} of {} points, {} noise", grouped(found.count), found.count == 1 ? "" : "s",
                              grouped(cloud.size() - noise), grouped(noise));
    std::vector<int64_t> sorted = sizes;
    std::sort(sorted.rbegin(), sorted.rend());
    if (!sorted.empty()) {
        report.text = "largest:";
        for (size_t i = 0; i < std::min<size_t>(sorted.size(), 5); ++i) report.text += " " + grouped(sorted[i]);
        report.text += fmt::format("; median {}\n", grouped(sorted[sorted.size() / 2]));
    }
    labelled.text = report.what + "\n" + report.text;
    for (size_t i = 0; i < sizes.size(); ++i) labelled.table.rows.push_back({i, sizes[i]});
    put_attribute(cloud.attributes, label_attribute(options.attribute, found.labels.span()));
    return labelled;
}

std::shared_ptr<ClustersOptions> add_clusters_options(Arguments& app) {
    auto options = std::make_shared<ClustersOptions>();
    app.option("--radius", options->radius, "How far neighbours are, at most").text("R").no_default();
    app.option("--min-points", options->min_points, "Within it, itself among them, around points of a core")
        .from_zero();
    app.option("--attribute", options->attribute, "Name of the attribute: from 0, -1 for noise");
    return options;
}

}  // namespace

MakeStep add_clusters_step(Arguments& app, const Common&) {
    return [options = add_clusters_options(app)] {
        require_sense(*options);
        Step step{.product = options->attribute};
        step.run = [options](Mesh& mesh) { return label_clusters(mesh.vertices, *options).report; };
        return step;
    };
}

Command add_clusters(Arguments& root, Common& common) {
    auto command = std::make_shared<LabelCommand>();
    Arguments& app = root.command("clusters", "Find clusters of points that lie dense (DBSCAN)");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    add_output(app, command->files.output).help("The cloud with the cluster of each point; - is standard output");
    const auto options = add_clusters_options(app);
    add_label_options(app, *command, "clusters");
    app.footer(
        "Example:\n  stipple clusters scan.ply --radius 0.2 -o clusters.ply --picture clusters.png\n"
        "  stipple clusters trees.las --radius 1 --min-points 20 --table csv");
    const auto run = [command, options, &common] {
        require_sense(*options);
        return run_labels(*command, options->attribute, common,
                          [&](PointCloud& cloud) { return label_clusters(cloud, *options); });
    };
    return {&app, run, {input}};
}

}  // namespace stipple::cli
