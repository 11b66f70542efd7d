#include <cmath>

#include "stipple/cli/study/commands.h"
#include "stipple/core/interrupt.h"
#include "stipple/picture/chart.h"
#include "stipple/tasks/upsampling_study/cost.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct CostArguments {
    std::string input, output = "runs/upsampling-cost";
    MethodArguments methods;
    std::vector<int64_t> neighbours = {4, 6, 8, 12, 16};
    int64_t points = 2048, runs = 3;
    double ratio = 4;
};

double mebibytes_of(int64_t bytes) {
    return bytes > 0 ? static_cast<double>(bytes) / 1048576 : NAN;
}

study::ReportTable cost_table(const std::vector<std::pair<std::string, study::Cost>>& costs, int64_t points,
                              const CostArguments& arguments) {
    study::ReportTable table;
    table.caption = fmt::format(
        "{} points times {:g}, the best of {} runs. forward: features, and points to latents; interpolate: "
        "neighbourhoods, "
        "weights and sum; inverse: latents to points; all: with candidates and choice. Memory of a stage: the largest "
        "result "
        "of a step; of all: the process at its peak.",
        grouped(points), arguments.ratio, arguments.runs);
    table.columns = {{"method"},
                     {"family"},
                     {"k", "", true},
                     {"stage"},
                     {"time (ms)", "milliseconds", true},
                     {"of network (%)", "percent", true},
                     {"parameters", "", true},
                     {"memory (MiB)", "mebibytes", true}};
    for (const auto& [name, cost] : costs) {
        table.groups.push_back(table.rows.size());
        const study::Cell k(cost.neighbours > 0 ? static_cast<double>(cost.neighbours) : NAN, 0);
        const auto add = [&, &cost = cost, &name = name](const char* stage, double seconds, int64_t parameters,
                                                         int64_t bytes) {
            table.rows.push_back({name,
                                  cost.family,
                                  k,
                                  stage,
                                  {1e3 * seconds, 2},
                                  {100 * seconds / cost.network_seconds, 1},
                                  {parameters >= 0 ? static_cast<double>(parameters) : NAN, 0},
                                  {mebibytes_of(bytes), 2}});
        };
        for (size_t s = 0; s < study::kStages; ++s)
            add(study::kStageNames[s], cost.stage_seconds[s], cost.stage_parameters[s], cost.stage_bytes[s]);
        add("network", cost.network_seconds, cost.parameters, cost.network_bytes);
        add("all", cost.seconds, cost.parameters, cost.peak_bytes);
    }
    return table;
}

Image draw_costs(const std::vector<std::pair<std::string, study::Cost>>& costs) {
    picture::BarChart chart;
    chart.title = "Time of the stages";
    chart.y.label = "time";
    chart.y.unit = "ms";
    for (const char* name : study::kStageNames) chart.series.push_back({.name = name});
    chart.series.push_back({.name = "all"});
    for (const auto& [name, cost] : costs) {
        chart.groups.push_back(cost.neighbours > 0 ? fmt::format("{}, k = {}", name, cost.neighbours) : name);
        for (size_t s = 0; s < study::kStages; ++s) chart.series[s].values.push_back(1e3 * cost.stage_seconds[s]);
        chart.series[study::kStages].values.push_back(1e3 * cost.seconds);
    }
    return picture::draw_chart(chart, {.width = 1200}).image;
}

std::vector<study::CostSubject> subjects_of(const std::vector<std::string>& models) {
    if (models.empty()) return study::all_families();
    std::vector<study::CostSubject> subjects;
    for (const study::Method& method : study::list_methods(models, {}))
        if (method.kind == study::MethodKind::network) subjects.push_back({method.name, method.path});
    STIPPLE_REQUIRE(!subjects.empty(), "there is no network to measure: name weights with --model");
    return subjects;
}

Result run_cost(const CostArguments& arguments, const Arguments& app, const Common& common) {
    STIPPLE_REQUIRE(std::isfinite(arguments.ratio) && arguments.ratio >= 1, "the ratio must be 1 or more, got {}",
                    arguments.ratio);
    STIPPLE_REQUIRE(!arguments.neighbours.empty(), "--neighbours names none");
    for (const int64_t k : arguments.neighbours)
        STIPPLE_REQUIRE(k >= 1 && k <= 128, "--neighbours must be 1 to 128, got {}", k);
    require_study_folder(arguments.output, common);
    Result result;
    PointCloud cloud = arguments.input.empty() ? study::sphere_points(arguments.points)
                                               : load_points({arguments.input, "", -1}, common, result);
    cloud.attributes.clear();
    recentre(cloud);
    result.fields["inputs"] = arguments.input.empty() ? Json::array() : Json::array({arguments.input});
    const std::vector<study::CostSubject> subjects = subjects_of(arguments.methods.models);
    if (common.dry_run) {
        result.text = fmt::format("would measure {} networks into {}\n", subjects.size(), arguments.output);
        return result;
    }
    std::vector<std::pair<std::string, study::Cost>> costs;
    Progress progress("study", static_cast<int64_t>(subjects.size() * arguments.neighbours.size()),
                      progress_mode(common), "measurements");
    for (const study::CostSubject& subject : subjects)
        for (const int64_t k : arguments.neighbours) {
            check_interrupted();
            costs.emplace_back(subject.name,
                               study::measure_cost(subject, k, cloud, arguments.ratio, common.device, arguments.runs));
            progress.add();
        }
    study::Report report{.title = "Cost of upsampling", .command = command_line(app, common)};
    for (const study::CostSubject& subject : subjects)
        if (subject.weights.empty())
            report.paragraphs.push_back(fmt::format("{} has random weights, which cost as much.", subject.name));
    report.tables.push_back(cost_table(costs, cloud.size(), arguments));
    study::make_folders(arguments.output);
    add_figure(
        arguments.output, "cost.png", "Time of the stages by network and neighbours", [&] { return draw_costs(costs); },
        common, report, result);
    write_report(arguments.output, report, common, result);
    return result;
}

}  // namespace

Command add_study_cost(Arguments& group, Common& common) {
    auto arguments = std::make_shared<CostArguments>();
    Arguments& app = group.command("upsampling-cost", "Time, parameters and memory by family, k and stage");
    app.option("INPUT", arguments->input, "A cloud to measure with; without one points of a sphere");
    app.option("-o,--output", arguments->output, "Folder of the report");
    app.option("--model", arguments->methods.models, "Weights, with a name of their own: NAME=FILE [all families]")
        .text("[NAME=]FILE")
        .one_word();
    app.option("--neighbours", arguments->neighbours, "Of the interpolation").separated_by(',').text("K,K,...");
    app.option("--ratio", arguments->ratio, "Points for each point").text("R");
    app.option("--points", arguments->points, "Of the sphere").between(64, 1 << 24).text("N");
    app.option("--runs", arguments->runs, "Of which the best counts").between(1, 1000).text("N");
    app.footer("Example:\n  stipple study upsampling-cost --neighbours 8,16 -o runs/cost");
    return {&app, [arguments, &app, &common] { return run_cost(*arguments, app, common); }};
}

}  // namespace stipple::cli
