#include <cmath>

#include "stipple/cli/common/network_options.h"
#include "stipple/cli/study/commands.h"
#include "stipple/core/interrupt.h"
#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/upsampling_study/ring_test.h"

namespace stipple::cli {
namespace {

constexpr double kRatio = 2;  // what was left out is made again

struct RingsArguments {
    std::vector<std::string> inputs;
    std::string output = "runs/upsampling-rings";
    MethodArguments methods;
};

study::ReportTable rings_table() {
    study::ReportTable table{
        "Sweeps of spinning LiDARs without every second ring, upsampled times 2, beside the rings that were left out. "
        "Errors are distances of new points to the plane of the whole sweep around them; invented: beyond 1.5 local "
        "spacings of the sweep; unsupported: those of them that lie more than 10 cm from its planes.",
        {{"sweep"}, {"rings", "", true}, {"method"}},
        {},
        {}};
    const char* names[] = {"new_points",          "at_left_percent", "error_left_cm", "error_cm", "invented_percent",
                           "unsupported_percent", "cover_cm",        "intensity",     "plane_cm", "plane_input_cm"};
    for (size_t i = 0; i < std::size(names); ++i) table.columns.push_back({study::kRingColumns[i], names[i], true});
    table.columns.push_back({"time (s)", "seconds", true});
    return table;
}

std::vector<study::Cell> rings_row(const std::string& sweep, int64_t rings, const std::string& method,
                                   const std::array<double, 10>& scores, double seconds) {
    std::vector<study::Cell> row = {sweep, {static_cast<double>(rings), 0}, method, {scores[0], 0}, {scores[1], 1}};
    for (size_t i = 2; i < scores.size(); ++i) row.emplace_back(scores[i], i == 7 ? 3 : 2);
    row.emplace_back(seconds, 2);
    return row;
}

Result run_rings(const RingsArguments& arguments, const Arguments& app, const Common& common) {
    require_study_folder(arguments.output, common);
    const std::vector<data::CloudEntry> entries = data::list_clouds(arguments.inputs);
    std::vector<study::Method> methods = study::list_methods(arguments.methods.models, arguments.methods.compared);
    std::erase_if(methods, [](const study::Method& method) {  // no new points, and no surface to sample
        return method.kind == study::MethodKind::input || method.kind == study::MethodKind::floor;
    });
    Result result;
    result.fields["inputs"] = arguments.inputs;
    if (common.dry_run) {
        result.text = fmt::format("would upsample {} sweeps into {}\n", entries.size(), arguments.output);
        return result;
    }
    const study::Condition condition{.id = "rings", .title = "sweeps", .ratio = kRatio};
    study::MethodRunner runner(common.device, entries.size() > 1);
    for (const study::Method& method : methods)
        for (const data::CloudEntry& entry : entries)
            runner.check(method, condition, {stem_of(entry.path), "", ""}, common.seed);
    study::ReportTable table = rings_table();
    Progress progress("study", static_cast<int64_t>(entries.size() * methods.size()), progress_mode(common), "outputs");
    for (const data::CloudEntry& entry : entries) {
        const PointCloud cloud =
            tasks::load_points(entry, {.normalise = false, .sample_faces = false}, {}, result.warnings);
        about_file(entry.name(), [&] {
            const study::RingTest test = study::leave_out_rings(drop_nonfinite(cloud));
            const study::Shape shape{stem_of(entry.path), "", ""};
            table.groups.push_back(table.rows.size());
            for (const study::Method& method : methods) {
                check_interrupted();
                const study::Made made = runner.run(method, condition, shape, {}, test.halved, common.seed);
                table.rows.push_back(rings_row(shape.name, static_cast<int64_t>(test.rings.rings.size()), method.name,
                                               columns_of(measure_by_rings(made.cloud, test)), made.seconds));
                progress.add();
            }
        });
    }
    study::Report report{.title = "Upsampling of sweeps", .command = command_line(app, common)};
    report.tables.push_back(std::move(table));
    study::make_folders(arguments.output);
    write_report(arguments.output, report, common, result);
    return result;
}

}  // namespace

Command add_study_rings(Arguments& group, Common& common) {
    auto arguments = std::make_shared<RingsArguments>();
    Arguments& app = group.command("upsampling-rings", "Of LiDAR sweeps without every second ring, beside those rings");
    Option input = app.option("INPUT", arguments->inputs, "Sweeps, folders of them, as the sensor gave them");
    app.option("-o,--output", arguments->output, "Folder of the report");
    add_methods(app, arguments->methods);
    app.footer("Example:\n  stipple study upsampling-rings sweeps/ -o runs/rings");
    return {&app, [arguments, &app, &common] { return run_rings(*arguments, app, common); }, {input}};
}

}  // namespace stipple::cli
