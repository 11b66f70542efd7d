#include <algorithm>
#include <cmath>
#include <set>

#include "stipple/bench/cases.h"
#include "stipple/bench/timing.h"
#include "stipple/cli/commands.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"

namespace stipple::cli {
namespace {

struct BenchOptions {
    std::string what = "ops";
    std::vector<std::string> ops;
    int repeat = 5;
    bool quick = false, list = false;
};

/// To four digits: more are noise.
double rounded(double value) {
    if (value == 0) return 0;
    const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 3);
    return std::round(value / unit) * unit;
}

/// The cases of the ops asked for, as far as the device runs them.
std::vector<const bench::Case*> choose(const BenchOptions& options, Device device) {
    std::set<std::string> known;
    for (const bench::Case& c : bench::op_cases()) known.insert(c.op);
    for (const std::string& op : options.ops)
        if (known.count(op) == 0)
            throw Error(ErrorCode::bad_argument, fmt::format("--op {}: no such op", op),
                        "stipple bench ops --list names them all");
    std::vector<const bench::Case*> chosen;
    for (const bench::Case& c : bench::op_cases()) {
        const bool wanted =
            options.ops.empty() || std::find(options.ops.begin(), options.ops.end(), c.op) != options.ops.end();
        if (wanted && (device.type == DeviceType::cpu ? c.on_cpu : c.on_cuda)) chosen.push_back(&c);
    }
    return chosen;
}

Result list_cases(const std::vector<const bench::Case*>& cases, const Common& common) {
    Result result;
    Table table{{"op", "shape", "points"}, {}};
    result.fields["cases"] = Json::array();
    for (const bench::Case* c : cases) {
        table.rows.push_back({c->op, c->shape, c->points});
        result.fields["cases"].push_back({{"op", c->op}, {"shape", c->shape}, {"points", c->points}});
    }
    result.text = format_table(table, common.table);
    return result;
}

Result run_bench(const BenchOptions& options, const Common& common) {
    const Device device = parse_device(common.device);
    const std::vector<const bench::Case*> cases = choose(options, device);
    if (options.list || common.dry_run) return list_cases(cases, common);

    const bench::Budget budget{options.repeat, options.quick ? 0.05 : 0.5};
    Result result;
    Table table{{"op", "shape", "best (ms)", "median (ms)", "Mpoints/s", "GB/s", "of copy (%)"}, {}};
    Json list = Json::array();
    const double copy = bench::copy_bandwidth(device);
    Progress progress("bench", static_cast<int64_t>(cases.size()), progress_mode(common), "cases");
    for (const bench::Case* c : cases) {
        check_interrupted();
        bench::Timing timing;
        try {
            timing = bench::measure(c->prepare(device), device, budget);
        } catch (const Error& error) {  // one case that does not fit the machine must not hide the others
            if (error.code() != ErrorCode::out_of_memory) throw;
            result.warnings.push_back(fmt::format("{} {}: {}", c->op, c->shape, error.message()));
            progress.add();
            continue;
        }
        const double rate = static_cast<double>(c->points) / timing.best;
        const double moved = static_cast<double>(c->bytes) / timing.best;
        // Where the arithmetic takes a hundred times longer than the memory, the memory's figures say nothing.
        const bool shows_memory = moved >= 0.01 * copy;
        table.rows.push_back({c->op, c->shape, rounded(1e3 * timing.best), rounded(1e3 * timing.median),
                              rounded(rate / 1e6), shows_memory ? Json(rounded(moved / 1e9)) : Json(),
                              shows_memory ? Json(std::round(100 * moved / copy)) : Json()});
        list.push_back({{"op", c->op},
                        {"shape", c->shape},
                        {"points", c->points},
                        {"bytes", c->bytes},
                        {"best_ms", 1e3 * timing.best},
                        {"median_ms", 1e3 * timing.median},
                        {"runs", timing.runs},
                        {"points_per_s", rate},
                        {"gb_per_s", moved / 1e9},
                        {"of_copy", moved / copy}});
        progress.add();
    }
    progress.finish();
    std::string name;
    for (const DeviceInfo& info : list_devices())
        if (info.device == device) name = info.name;
    result.fields["cases"] = list;
    result.fields["threads"] = threads();
    result.fields["device_name"] = name;
    result.fields["copy_gb_per_s"] = copy / 1e9;
    result.text = format_table(table, common.table);
    if (common.table.empty())
        result.text += fmt::format(
            "\n{} ({}), {} threads; a copy runs at {:.1f} GB/s. GB/s counts inputs read once and outputs written "
            "once.\n",
            to_string(device), name, threads(), copy / 1e9);
    return result;
}

}  // namespace

Command add_bench(Arguments& root, Common& common) {
    auto options = std::make_shared<BenchOptions>();
    Arguments& app = root.command("bench", "Time the point operations on this machine");
    app.option("WHAT", options->what, "ops").one_of({"ops"}).text("ops").no_default();
    app.option("--op", options->ops, "Only these, see --list").text("NAME...");
    app.option("--repeat", options->repeat, "Timed runs of each case, at least").between(1, 1000).text("N");
    app.flag("--quick", options->quick, "A tenth of the time for each case");
    app.flag("--list", options->list, "Print the cases and stop");
    app.footer(
        "Example:\n  stipple bench ops --op knn --threads 1\n  stipple bench ops --device cuda --table md\n"
        "  stipple bench ops --quick --json | jq '.cases[] | [.op, .shape, .best_ms]'");
    return {&app, [options, &common] { return run_bench(*options, common); }};
}

}  // namespace stipple::cli
