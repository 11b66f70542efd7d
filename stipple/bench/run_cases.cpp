#include "stipple/bench/run_cases.h"

#include <algorithm>
#include <set>

#include "stipple/bench/timing.h"
#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"

namespace stipple::bench {
namespace {

const Fields& case_cost_fields() {
    using Cost = CaseCost;
    static const Fields fields = {
        object_field<&Cost::facts>("", case_fields),
        field<&Cost::bytes>("bytes", "Inputs read once, outputs written once").unit("byte"),
        field<&Cost::best_ms>("best_ms", "Shortest run").unit("ms"),
        field<&Cost::median_ms>("median_ms", "Median of the runs").unit("ms"),
        field<&Cost::runs>("runs", "Timed runs"),
        field<&Cost::points_per_s>("points_per_s", "Points in a second of the shortest run"),
        field<&Cost::gb_per_s>("gb_per_s", "Bytes in a second of the shortest run").unit("GB/s"),
        field<&Cost::of_copy>("of_copy", "The same, of what a copy moves")};
    return fields;
}

}  // namespace

const Fields& bench_fields() {
    static const Fields fields = {
        field<&BenchOptions::ops>("op", "Only these, see --list").shown("NAME..."),
        field<&BenchOptions::repeat>("repeat", "Timed runs of each case, at least").between(1, 1000).shown("N"),
        field<&BenchOptions::quick>("quick", "A tenth of the time for each case")};
    return fields;
}

std::vector<const Case*> choose_cases(const BenchOptions& options, Device device) {
    std::set<std::string> known;
    for (const Case& one : op_cases()) known.insert(one.op);
    for (const std::string& op : options.ops)
        if (known.count(op) == 0)
            throw Error(ErrorCode::bad_argument, fmt::format("--op {}: no such op", op),
                        "stipple bench ops --list names them all");
    std::vector<const Case*> chosen;
    for (const Case& one : op_cases()) {
        const bool wanted =
            options.ops.empty() || std::find(options.ops.begin(), options.ops.end(), one.op) != options.ops.end();
        if (wanted && (device.type == DeviceType::cpu ? one.on_cpu : one.on_cuda)) chosen.push_back(&one);
    }
    return chosen;
}

const Fields& case_fields() {
    static const Fields fields = {field<&CaseFacts::op>("op", "Name of the op"),
                                  field<&CaseFacts::shape>("shape", "Sizes of its inputs"),
                                  field<&CaseFacts::points>("points", "Points that one call works on")};
    return fields;
}

CaseFacts facts_of(const Case& one) {
    return {one.op, one.shape, one.points};
}

const Fields& bench_report_fields() {
    using Report = BenchReport;
    static const Fields fields = {
        objects_field<&Report::cases>("cases", case_cost_fields),
        field<&Report::threads>("threads", "Threads of the CPU"),
        field<&Report::device_name>("device_name", "What the device calls itself"),
        field<&Report::copy_gb_per_s>("copy_gb_per_s", "What a copy moves, read and written").unit("GB/s")};
    return fields;
}

BenchReport run_cases(const std::vector<const Case*>& cases, const BenchOptions& options, Device device,
                      const std::function<void()>& advance) {
    check_fields(bench_fields(), &options);
    const Budget budget{options.repeat, options.quick ? 0.05 : 0.5};
    const double copy = copy_bandwidth(device);
    BenchReport report{.threads = threads(), .copy_gb_per_s = copy / 1e9};
    for (const DeviceInfo& info : list_devices())
        if (info.device == device) report.device_name = info.name;
    for (const Case* one : cases) {
        check_interrupted();
        try {
            const Timing timing = measure(one->prepare(device), device, budget);
            const double moved = static_cast<double>(one->bytes) / timing.best;
            report.cases.push_back({.facts = facts_of(*one),
                                    .bytes = one->bytes,
                                    .best_ms = 1e3 * timing.best,
                                    .median_ms = 1e3 * timing.median,
                                    .runs = timing.runs,
                                    .points_per_s = static_cast<double>(one->points) / timing.best,
                                    .gb_per_s = moved / 1e9,
                                    .of_copy = moved / copy});
        } catch (const Error& error) {
            if (error.code() != ErrorCode::out_of_memory) throw;
            report.left_out.push_back(fmt::format("{} {}: {}", one->op, one->shape, error.message()));
        }
        if (advance) advance();
    }
    return report;
}

}  // namespace stipple::bench
