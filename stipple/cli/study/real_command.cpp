#include <algorithm>
#include <cmath>
#include <map>

#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/study/commands.h"
#include "stipple/core/interrupt.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/upsampling_study/place_colors.h"
#include "stipple/tasks/upsampling_study/ruler.h"

namespace stipple::cli {
namespace {

constexpr size_t kScansShown = 4;
constexpr int64_t kThinned = 4;  // points of a scan for each that stays

struct RealArguments {
    std::vector<std::string> inputs;
    std::string output = "runs/upsampling-real", up = "z";
    MethodArguments methods;
    std::vector<std::string> thinnings = study::thinning_names();
    double ratio = 4;
    int64_t size = 0, most = 40000;
};

/// Input and output of the method that figures show.
struct ShownScan {
    std::string name;
    PointCloud input, output;
};

study::ReportTable scan_table(double ratio) {
    study::ReportTable table{
        fmt::format("Scans, thinned and upsampled times {:g}, beside the scan itself; in its spacings. stray: from the "
                    "output to the scan; invented: beyond 1.5 spacings; off: from the plane of 16 points of the scan; "
                    "cover: from the scan to the output.",
                    ratio),
        {{"thinned by", "thinning"}, {"scan"}, {"method"}, {"points", "", true}},
        {},
        {}};
    const char* names[] = {"stray_mean", "stray_99", "invented_percent", "off_mean", "cover_mean", "cover_99"};
    for (size_t i = 0; i < std::size(names); ++i) table.columns.push_back({study::kRulerColumns[i], names[i], true});
    table.columns.push_back({"time (s)", "seconds", true});
    return table;
}

void add_scan_row(study::ReportTable& table, const std::string& thinning, const std::string& scan,
                  const std::string& method, int64_t points, const std::array<double, 6>& scores, double seconds) {
    std::vector<study::Cell> row = {thinning, scan, method, {static_cast<double>(points), 0}};
    for (const double score : scores) row.emplace_back(score, 3);
    row.emplace_back(seconds, 2);
    table.rows.push_back(std::move(row));
}

/// Sums over scans, of each method.
struct MethodSums {
    std::array<double, 6> scores = {};
    double seconds = 0;
    int64_t points = 0, scans = 0;

    void add(const std::array<double, 6>& more, int64_t count, double time) {
        for (size_t i = 0; i < scores.size(); ++i) scores[i] += more[i];
        seconds += time, points += count, ++scans;
    }
};

void add_mean_row(study::ReportTable& table, const std::string& thinning, const std::string& method,
                  const MethodSums& sums) {
    const auto scans = static_cast<double>(sums.scans);
    std::array<double, 6> means = sums.scores;
    for (double& mean : means) mean /= scans;
    add_scan_row(table, thinning, fmt::format("mean of {}", sums.scans), method, sums.points / sums.scans, means,
                 sums.seconds / scans);
}

std::vector<study::Thinning> thinnings_of(const std::vector<std::string>& names) {
    std::vector<study::Thinning> kinds;
    for (const std::string& name : names) {
        const auto& all = study::thinning_names();
        const auto found = std::find(all.begin(), all.end(), name);
        STIPPLE_REQUIRE(found != all.end(), "--thin: fps, random or voxel, got {}", name);
        kinds.push_back(static_cast<study::Thinning>(found - all.begin()));
    }
    STIPPLE_REQUIRE(!kinds.empty(), "--thin wants one way at least");
    return kinds;
}

Image draw_scans(std::vector<ShownScan>& scans, const RealArguments& arguments, const std::string& method) {
    std::vector<picture::Panel> panels;
    for (ShownScan& scan : scans) study::color_by_place(scan.input);
    for (ShownScan& scan : scans) study::color_by_nearest(scan.output, scan.input);
    for (const ShownScan& scan : scans)
        panels.push_back({.cloud = &scan.input,
                          .caption = fmt::format("{}, {} points", scan.name, grouped(scan.input.size())),
                          .color_by = "color"});
    for (const ShownScan& scan : scans)
        panels.push_back({.cloud = &scan.output,
                          .caption = fmt::format("{}, {} points", method, grouped(scan.output.size())),
                          .color_by = "color"});
    picture::FigureStyle style;
    style.columns = static_cast<int64_t>(scans.size());
    style.shared_camera = false;  // scans of different size
    style.panel_width = style.panel_height = arguments.size > 0 ? arguments.size : 400;
    style.viewpoint.up = picture::up_axis_by_name(arguments.up);
    return picture::draw_figure(panels, style).image;
}

Result run_real(const RealArguments& arguments, const Arguments& app, const Common& common) {
    STIPPLE_REQUIRE(std::isfinite(arguments.ratio) && arguments.ratio >= 1, "the ratio must be 1 or more, got {}",
                    arguments.ratio);
    STIPPLE_REQUIRE(arguments.most >= kThinned * tasks::kFewestUpsampled, "--most must be {} or more, got {}",
                    kThinned * tasks::kFewestUpsampled, arguments.most);
    const std::vector<study::Thinning> kinds = thinnings_of(arguments.thinnings);
    require_study_folder(arguments.output, common);
    const std::vector<data::CloudEntry> entries = data::list_clouds(arguments.inputs);
    const std::vector<study::Method> methods =
        study::list_methods(arguments.methods.models, arguments.methods.compared);
    Result result;
    result.fields["inputs"] = arguments.inputs;
    if (common.dry_run) {
        result.text = fmt::format("would upsample {} scans into {}\n", entries.size(), arguments.output);
        return result;
    }
    const study::Condition condition{.id = "real", .title = "scans", .ratio = arguments.ratio};
    study::Report report{.title = "Upsampling of scans", .command = command_line(app, common)};
    study::ReportTable table = scan_table(arguments.ratio), means = scan_table(arguments.ratio);
    study::MethodRunner runner(common.device, false);
    std::vector<ShownScan> shown;
    const study::Method* figure_method = &methods[1];  // midpoints, unless there is a network
    for (const study::Method& method : methods)
        if (method.kind == study::MethodKind::network && figure_method == &methods[1]) figure_method = &method;
    Progress progress("study", static_cast<int64_t>(entries.size() * kinds.size() * (methods.size() - 1)),
                      progress_mode(common), "outputs");
    for (const study::Method& method : methods)
        for (const data::CloudEntry& entry : entries)
            runner.check(method, condition, {stem_of(entry.path), "", ""}, common.seed);
    std::vector<PointCloud> scans;
    for (const data::CloudEntry& entry : entries) {
        PointCloud cloud = tasks::load_points(entry, {.normalise = false, .sample_faces = false}, {}, result.warnings);
        PointCloud scan = about_file(entry.name(), [&] {
            PointCloud made = study::scan_to_judge_by(cloud, arguments.most);
            STIPPLE_REQUIRE(made.size() >= kThinned * tasks::kFewestUpsampled,
                            "{} points: a scan to judge by has {} or more", made.size(),
                            kThinned * tasks::kFewestUpsampled);
            return made;
        });
        recentre(scan);
        scans.push_back(std::move(scan));
    }
    for (const study::Thinning kind : kinds) {
        const std::string& thinned_by = study::thinning_names()[static_cast<size_t>(kind)];
        std::map<std::string, MethodSums> sums;
        for (size_t s = 0; s < scans.size(); ++s) {
            const PointCloud& scan = scans[s];
            const study::Shape shape{stem_of(entries[s].path), "", ""};
            PointCloud input = study::thin(scan, kind, scan.size() / kThinned, common.seed);
            table.groups.push_back(table.rows.size());
            for (const study::Method& method : methods) {
                if (method.kind == study::MethodKind::floor) continue;  // there is no surface to sample
                check_interrupted();
                study::Made made = about_file(
                    entries[s].name(), [&] { return runner.run(method, condition, shape, {}, input, common.seed); });
                const std::array<double, 6> scores = study::columns_of(study::measure_by_ruler(made.cloud, scan));
                add_scan_row(table, thinned_by, shape.name, method.name, made.cloud.size(), scores, made.seconds);
                sums[method.name].add(scores, made.cloud.size(), made.seconds);
                if (&method == figure_method && kind == kinds[0] && shown.size() < kScansShown)
                    shown.push_back({shape.name, input.clone(), std::move(made.cloud)});
                progress.add();
            }
        }
        means.groups.push_back(means.rows.size());
        for (const study::Method& method : methods)
            if (sums.count(method.name)) add_mean_row(means, thinned_by, method.name, sums.at(method.name));
    }
    report.tables.push_back(std::move(means));
    report.tables.push_back(std::move(table));
    if (entries.size() > kScansShown)
        report.paragraphs.push_back(
            fmt::format("The figure shows the first {} of {} scans.", kScansShown, entries.size()));
    study::make_folders(arguments.output);
    add_figure(
        arguments.output, "scans.png", "Scans, and outputs coloured by the nearest input point",
        [&] { return draw_scans(shown, arguments, figure_method->name); }, common, report, result);
    write_report(arguments.output, report, common, result);
    return result;
}

}  // namespace

Command add_study_real(Arguments& group, Common& common) {
    auto arguments = std::make_shared<RealArguments>();
    Arguments& app = group.command("upsampling-real", "Of scans that were thinned, beside the scans themselves");
    Option input = app.option("INPUT", arguments->inputs, "Scans, folders of them");
    app.option("-o,--output", arguments->output, "Folder of the report");
    add_methods(app, arguments->methods);
    app.option("--thin", arguments->thinnings, "Ways to take three of four points away").text("WAY...");
    app.option("--most", arguments->most, "Larger scans are thinned to so many points first").text("N");
    app.option("--ratio", arguments->ratio, "Points for each point").text("R");
    add_up(app, arguments->up);
    add_picture_size(app, arguments->size);
    app.footer(
        "The first table is the mean over the scans, the second has a row for each. Draws the first four.\n\n"
        "Example:\n  stipple study upsampling-real scans/ -o runs/real");
    return {&app, [arguments, &app, &common] { return run_real(*arguments, app, common); }, {input}};
}

}  // namespace stipple::cli
