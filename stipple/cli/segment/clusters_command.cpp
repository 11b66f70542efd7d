#include <chrono>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/common/table.h"
#include "stipple/geometry/clusters.h"

namespace stipple::cli {
namespace {

struct ClustersOptions {
    InputFile input;
    OutputFile output;
    std::string attribute = "cluster", picture, up = "z";
    double radius = 0;
    int64_t min_points = 10;
};

Result run_clusters(const ClustersOptions& options, const Common& common) {
    STIPPLE_REQUIRE(options.radius != 0, "how far are neighbours at most? Give --radius R");
    STIPPLE_REQUIRE(options.radius > 0 && std::isfinite(options.radius), "--radius must be above 0, got {}",
                    options.radius);
    STIPPLE_REQUIRE(options.min_points >= 1, "--min-points must be from 1, got {}", options.min_points);
    STIPPLE_REQUIRE(!options.attribute.empty(), "--attribute must have a name");
    io::Format format{};
    if (!options.output.path.empty()) format = require_output(options.output, common, options.attribute);
    require_picture(options.picture, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    Mesh mesh = load_with_progress(options.input.path, options.input.from, options.input.item, common, result.warnings);
    PointCloud& cloud = mesh.vertices;
    const auto begin = std::chrono::steady_clock::now();
    const geometry::DensityClusters found = about_file(options.input.path, [&] {
        return geometry::density_clusters(cloud.positions.view(), options.radius, options.min_points);
    });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    std::vector<int64_t> sizes(static_cast<size_t>(found.count), 0);
    int64_t noise = 0;
    for (const int32_t label : found.labels.span()) ++(label < 0 ? noise : sizes[static_cast<size_t>(label)]);
    result.fields["points"] = cloud.size();
    result.fields["radius"] = options.radius;
    result.fields["min_points"] = options.min_points;
    result.fields["seconds"] = elapsed.count();
    result.fields["clusters"] = found.count;
    result.fields["noise"] = noise;
    result.fields["sizes"] = sizes;
    const std::string what = fmt::format("{} cluster{} of {} points, {} noise", grouped(found.count),
                                         found.count == 1 ? "" : "s", grouped(cloud.size() - noise), grouped(noise));
    std::vector<int64_t> sorted = sizes;
    std::sort(sorted.rbegin(), sorted.rend());
    result.text = what + "\n";
    if (!sorted.empty()) {
        result.text += "largest:";
        for (size_t i = 0; i < std::min<size_t>(sorted.size(), 5); ++i) result.text += " " + grouped(sorted[i]);
        result.text += fmt::format("; median {}\n", grouped(sorted[sorted.size() / 2]));
    }
    Table table{{"cluster", "points"}, {}};
    for (size_t i = 0; i < sizes.size(); ++i) table.rows.push_back({i, sizes[i]});
    put_attribute(cloud.attributes, label_attribute(options.attribute, found.labels.span()));
    if (!options.output.path.empty())
        save_output(mesh, options.output, format, fmt::format("{} points", grouped(cloud.size())), common, result);
    save_picture(
        options.picture, [&] { return draw_labels(cloud, found.labels.span(), what, options.up); }, common, result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
    return result;
}

}  // namespace

Command add_clusters(Arguments& root, Common& common) {
    auto options = std::make_shared<ClustersOptions>();
    Arguments& app = root.command("clusters", "Find clusters of points that lie dense (DBSCAN)");
    Option input = app.option("INPUT", options->input.path, "The file; - is standard input");
    add_output(app, options->output).help("The cloud with the cluster of each point; - is standard output");
    app.option("--radius", options->radius, "How far neighbours are, at most").text("R").no_default();
    app.option("--min-points", options->min_points, "Within it, itself among them, around points of a core")
        .from_zero();
    app.option("--attribute", options->attribute, "Name of the attribute: from 0, -1 for noise");
    app.option("--picture", options->picture, "Draw the clusters in colours into this .png");
    add_up(app, options->up);
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Example:\n  stipple clusters scan.ply --radius 0.2 -o clusters.ply --picture clusters.png\n"
        "  stipple clusters trees.las --radius 1 --min-points 20 --table csv");
    return {&app, [options, &common] { return run_clusters(*options, common); }, {input}};
}

}  // namespace stipple::cli
