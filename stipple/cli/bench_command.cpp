#include <cmath>

#include "stipple/bench/run_cases.h"
#include "stipple/cli/commands.h"
#include "stipple/cli/common/table.h"

namespace stipple::cli {
namespace {

struct BenchCommand {
    std::string what = "ops";
    bench::BenchOptions how;
    bool list = false;
};

/// To four digits: more are noise.
double rounded(double value) {
    if (value == 0) return 0;
    const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 3);
    return std::round(value / unit) * unit;
}

Result list_cases(const std::vector<const bench::Case*>& cases, const Common& common) {
    Result result;
    Table table{{"op", "shape", "points"}, {}};
    result.fields["cases"] = Json::array();
    for (const bench::Case* one : cases) {
        const bench::CaseFacts facts = bench::facts_of(*one);
        table.rows.push_back({facts.op, facts.shape, facts.points});
        result.fields["cases"].push_back(to_json(bench::case_fields(), &facts));
    }
    result.text = format_table(table, common.table);
    return result;
}

Table timing_table(const bench::BenchReport& report) {
    Table table{{"op", "shape", "best (ms)", "median (ms)", "Mpoints/s", "GB/s", "of copy (%)"}, {}};
    for (const bench::CaseCost& cost : report.cases) {
        // Where the arithmetic takes a hundred times longer than the memory, the memory's figures say nothing.
        const bool shows_memory = cost.of_copy >= 0.01;
        table.rows.push_back({cost.facts.op, cost.facts.shape, rounded(cost.best_ms), rounded(cost.median_ms),
                              rounded(cost.points_per_s / 1e6), shows_memory ? Json(rounded(cost.gb_per_s)) : Json(),
                              shows_memory ? Json(std::round(100 * cost.of_copy)) : Json()});
    }
    return table;
}

Result run_bench(const BenchCommand& command, const Common& common) {
    const Device device = parse_device(common.device);
    const std::vector<const bench::Case*> cases = bench::choose_cases(command.how, device);
    if (command.list || common.dry_run) return list_cases(cases, common);

    Result result;
    Progress progress("bench", static_cast<int64_t>(cases.size()), progress_mode(common), "cases");
    const bench::BenchReport report = bench::run_cases(cases, command.how, device, [&] { progress.add(); });
    progress.finish();
    result.warnings = report.left_out;
    result.fields = to_json(bench::bench_report_fields(), &report);
    result.text = format_table(timing_table(report), common.table);
    if (common.table.empty())
        result.text += fmt::format(
            "\n{} ({}), {} threads; a copy runs at {:.1f} GB/s. GB/s counts inputs read once and outputs written "
            "once.\n",
            to_string(device), report.device_name, report.threads, report.copy_gb_per_s);
    return result;
}

}  // namespace

Command add_bench(Arguments& root, Common& common) {
    auto command = std::make_shared<BenchCommand>();
    Arguments& app = root.command("bench", "Time the point operations on this machine");
    app.option("WHAT", command->what, "ops").one_of({"ops"}).text("ops").no_default();
    app.add(bench::bench_fields(), &command->how);
    app.flag("--list", command->list, "Print the cases and stop");
    app.footer(
        "Example:\n  stipple bench ops --op knn --threads 1\n  stipple bench ops --device cuda --table md\n"
        "  stipple bench ops --quick --json | jq '.cases[] | [.op, .shape, .best_ms]'");
    return {&app, [command, &common] { return run_bench(*command, common); }};
}

}  // namespace stipple::cli
