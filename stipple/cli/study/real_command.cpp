#include <cmath>

#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/study/commands.h"
#include "stipple/core/interrupt.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/upsampling_study/scans.h"

namespace stipple::cli {
namespace {

constexpr size_t kScansShown = 4;

struct RealArguments {
    std::vector<std::string> inputs;
    std::string output = "runs/upsampling-real", up = "z";
    MethodArguments methods;
    double ratio = 4;
    int64_t size = 0;
};

/// Input and output of the method that figures show.
struct ShownScan {
    std::string name;
    PointCloud input, output;
};

study::ReportTable scan_table(double ratio) {
    return {
        fmt::format("Scans times {:g}, without a truth. Spacing: mean distance to the nearest point; variation: its "
                    "deviation / mean, 0 on a lattice, 0.52 for random points. Distances in spacings of the input.",
                    ratio),
        {{"scan"},
         {"method"},
         {"points", "", true},
         {"spacing", "", true},
         {"variation", "", true},
         {"to input", "to_input", true},
         {"farthest", "farthest_to_input", true},
         {"from input", "from_input", true},
         {"time (s)", "seconds", true}},
        {},
        {}};
}

void add_scan_row(study::ReportTable& table, const std::string& scan, const std::string& method,
                  const study::ScanMeasures& found, double seconds) {
    table.rows.push_back({scan,
                          method,
                          {static_cast<double>(found.points), 0},
                          {found.spacing, 5},
                          {found.variation, 4},
                          {found.to_input, 3},
                          {found.farthest_to_input, 2},
                          {found.from_input, 3},
                          {seconds, 2}});
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
    study::ReportTable table = scan_table(arguments.ratio);
    study::MethodRunner runner(common.device, false);
    std::vector<ShownScan> shown;
    const study::Method* figure_method = &methods[1];  // midpoints, unless there is a network
    for (const study::Method& method : methods)
        if (method.kind == study::MethodKind::network && figure_method == &methods[1]) figure_method = &method;
    Progress progress("study", static_cast<int64_t>(entries.size() * (methods.size() - 1)), progress_mode(common),
                      "outputs");
    for (const study::Method& method : methods)
        for (const data::CloudEntry& entry : entries)
            runner.check(method, condition, {stem_of(entry.path), "", ""}, common.seed);
    for (const data::CloudEntry& entry : entries) {
        PointCloud cloud = tasks::load_points(entry, {.normalise = false, .sample_faces = false}, {}, result.warnings);
        recentre(cloud);
        cloud.attributes.clear();
        const study::Shape shape{stem_of(entry.path), "", ""};
        table.groups.push_back(table.rows.size());
        for (const study::Method& method : methods) {
            if (method.kind == study::MethodKind::floor) continue;  // there is no surface to sample
            check_interrupted();
            study::Made made =
                about_file(entry.name(), [&] { return runner.run(method, condition, shape, {}, cloud, common.seed); });
            add_scan_row(table, shape.name, method.name, study::measure_scan(cloud, made.cloud), made.seconds);
            if (&method == figure_method && shown.size() < kScansShown)
                shown.push_back({shape.name, cloud.clone(), std::move(made.cloud)});
            progress.add();
        }
    }
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
    Arguments& app = group.command("upsampling-real", "Of scans, which have no truth");
    Option input = app.option("INPUT", arguments->inputs, "Scans, folders of them");
    app.option("-o,--output", arguments->output, "Folder of the report");
    add_methods(app, arguments->methods);
    app.option("--ratio", arguments->ratio, "Points for each point").text("R");
    add_up(app, arguments->up);
    add_picture_size(app, arguments->size);
    app.footer(
        "Prints spacing and its evenness, distances to the input, counts and times; draws the first four.\n\n"
        "Example:\n  stipple study upsampling-real scans/ -o runs/real");
    return {&app, [arguments, &app, &common] { return run_real(*arguments, app, common); }, {input}};
}

}  // namespace stipple::cli
