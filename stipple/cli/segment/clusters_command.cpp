#include "stipple/cli/commands.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/steps.h"
#include "stipple/tasks/label_scan.h"

namespace stipple::cli {
namespace {

Labelled clusters_of(PointCloud& cloud, const tasks::LabelClusterOptions& options) {
    const tasks::ClusterLabels found = tasks::label_clusters(cloud, options);
    Labelled labelled{.table = {{"cluster", "points"}, {}}, .saved = fmt::format("{} points", grouped(found.points))};
    StepReport& report = labelled.report;
    report.fields = to_json(tasks::cluster_labels_fields(), &found);
    report.what =
        fmt::format("{} cluster{} of {} points, {} noise", grouped(found.clusters), found.clusters == 1 ? "" : "s",
                    grouped(found.points - found.noise), grouped(found.noise));
    std::vector<int64_t> sorted = found.sizes;
    std::sort(sorted.rbegin(), sorted.rend());
    if (!sorted.empty()) {
        report.text = "largest:";
        for (size_t i = 0; i < std::min<size_t>(sorted.size(), 5); ++i) report.text += " " + grouped(sorted[i]);
        report.text += fmt::format("; median {}\n", grouped(sorted[sorted.size() / 2]));
    }
    labelled.text = report.what + "\n" + report.text;
    for (size_t i = 0; i < found.sizes.size(); ++i) labelled.table.rows.push_back({i, found.sizes[i]});
    return labelled;
}

}  // namespace

MakeStep add_clusters_step(Arguments& app, const Common&) {
    auto options = std::make_shared<tasks::LabelClusterOptions>();
    app.add(tasks::label_cluster_fields(), options.get());
    return [options] {
        check_options(*options);
        Step step{.product = options->attribute};
        step.run = [options](Mesh& mesh) { return clusters_of(mesh.vertices, *options).report; };
        return step;
    };
}

Command add_clusters(Arguments& root, Common& common) {
    auto command = std::make_shared<LabelCommand>();
    auto options = std::make_shared<tasks::LabelClusterOptions>();
    Arguments& app = root.command("clusters", "Find clusters of points that lie dense (DBSCAN)");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    add_output(app, command->files.output).help("The cloud with the cluster of each point; - is standard output");
    app.add(tasks::label_cluster_fields(), options.get());
    add_label_options(app, *command, "clusters");
    app.footer(
        "Example:\n  stipple clusters scan.ply --radius 0.2 -o clusters.ply --picture clusters.png\n"
        "  stipple clusters trees.las --radius 1 --min-points 20 --table csv");
    const auto run = [command, options, &common] {
        check_options(*options);
        return run_labels(*command, options->attribute, common,
                          [&](PointCloud& cloud) { return clusters_of(cloud, *options); });
    };
    return {&app, run, {input}};
}

}  // namespace stipple::cli
