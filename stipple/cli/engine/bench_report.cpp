#include "stipple/cli/engine/bench_report.h"

#include <cmath>

#include "stipple/cli/common/table.h"

namespace stipple::cli {
namespace {

/// To four digits: more are noise.
double rounded_time(double value) {
    if (value == 0 || !std::isfinite(value)) return value;
    const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 3);
    return std::round(value / unit) * unit;
}

Json statistics_json(const engine::TimeStatistics& times) {
    return {{"min", 1e3 * times.min},       {"max", 1e3 * times.max}, {"mean", 1e3 * times.mean},
            {"median", 1e3 * times.median}, {"p99", 1e3 * times.p99}, {"variation", times.variation}};
}

std::string statistics_text(const engine::TimeStatistics& times) {
    return fmt::format("min {:.4g} ms, max {:.4g} ms, mean {:.4g} ms, median {:.4g} ms, p99 {:.4g} ms", 1e3 * times.min,
                       1e3 * times.max, 1e3 * times.mean, 1e3 * times.median, 1e3 * times.p99);
}

}  // namespace

Json bench_json(const BenchRow& row) {
    const bool is_cuda = row.device.type == DeviceType::cuda;
    Json object = {{"precision", name_of(row.precision)},
                   {"batch", row.batch},
                   {"points", row.points},
                   {"runs", row.times.runs},
                   {"clouds_per_s", row.times.clouds_per_second},
                   {"gflop_per_s", row.operations_per_second() / 1e9},
                   {"limit_gflop_per_s",
                    row.limit.operations_per_second > 0 ? Json(row.limit.operations_per_second / 1e9) : Json()},
                   {"of_limit", row.limit.operations_per_second > 0 ? Json(row.of_limit()) : Json()},
                   {"limit", row.limit.what},
                   {"multiply_adds", row.multiply_adds},
                   {"latency_ms", statistics_json(row.times.latency)},
                   {"compute_ms", statistics_json(row.times.compute)}};
    if (is_cuda) {
        object["enqueue_ms"] = statistics_json(row.times.enqueue);
        object["host_to_device_ms"] = statistics_json(row.times.host_to_device);
        object["device_to_host_ms"] = statistics_json(row.times.device_to_host);
        object["gpu_s"] = row.times.device_seconds;
        object["device_bytes"] = row.times.device_bytes;
    }
    object["wall_s"] = row.times.wall_seconds;
    object["weight_bytes"] = row.weight_bytes;
    object["context_bytes"] = row.context_bytes;
    object["error"] = row.agreement ? Json(row.agreement->error) : Json();
    object["max_error"] = row.agreement ? Json(row.agreement->max_error) : Json();
    object["winner_agreement"] = row.agreement ? Json(row.agreement->winners) : Json();
    object["accuracy"] = row.accuracy ? Json(*row.accuracy) : Json();
    return object;
}

std::string bench_summary(const BenchRow& row) {
    const bool is_cuda = row.device.type == DeviceType::cuda;
    std::vector<std::pair<std::string, std::string>> pairs = {
        {"throughput",
         fmt::format("{:.6g} clouds/s (batch {}, {} points, {})", rounded_time(row.times.clouds_per_second),
                     grouped(row.batch), grouped(row.points), name_of(row.precision))},
        {"latency", statistics_text(row.times.latency)}};
    if (is_cuda) {
        pairs.emplace_back("enqueue", statistics_text(row.times.enqueue));
        pairs.emplace_back("host to device", statistics_text(row.times.host_to_device));
        pairs.emplace_back("compute", statistics_text(row.times.compute));
        pairs.emplace_back("device to host", statistics_text(row.times.device_to_host));
    }
    pairs.emplace_back("runs", fmt::format("{} after warming up", grouped(row.times.runs)));
    pairs.emplace_back("total wall time", fmt::format("{:.4g} s", row.times.wall_seconds));
    if (is_cuda) pairs.emplace_back("total GPU time", fmt::format("{:.4g} s", row.times.device_seconds));
    std::string arithmetic = fmt::format("{:.4g} GFLOP/s", row.operations_per_second() / 1e9);
    if (row.limit.operations_per_second > 0)
        arithmetic += fmt::format(", {:.1f} % of the {:.4g} that {} reaches", 100 * row.of_limit(),
                                  row.limit.operations_per_second / 1e9, row.limit.what);
    pairs.emplace_back("arithmetic", arithmetic);
    std::string memory =
        fmt::format("weights {}, context {}", bytes_text(row.weight_bytes), bytes_text(row.context_bytes));
    if (is_cuda)
        memory +=
            fmt::format("; the device's use grew by {} with inputs and outputs", bytes_text(row.times.device_bytes));
    pairs.emplace_back("peak memory", memory);
    if (row.agreement)
        pairs.emplace_back(
            "beside fp32",
            fmt::format("error {:.3g} % of the logits' spread, largest {:.3g}, same winner {:.2f} %",
                        100 * row.agreement->error, row.agreement->max_error, 100 * row.agreement->winners));
    if (row.accuracy) pairs.emplace_back("accuracy", fmt::format("{:.2f} %", 100 * *row.accuracy));
    return format_pairs(pairs, 0);
}

std::string bench_table(const std::vector<BenchRow>& rows, const std::string& style) {
    bool has_accuracy = false;
    for (const BenchRow& row : rows) has_accuracy |= row.accuracy.has_value();
    Table table{{"precision", "batch", "points", "clouds/s", "median (ms)", "p99 (ms)", "GFLOP/s", "of limit (%)",
                 "memory (MB)", "error (%)", "winner (%)"},
                {}};
    if (has_accuracy) table.columns.push_back("accuracy (%)");
    for (const BenchRow& row : rows) {
        std::vector<Json> cells = {
            std::string(name_of(row.precision)),
            row.batch,
            row.points,
            rounded_time(row.times.clouds_per_second),
            rounded_time(1e3 * row.times.latency.median),
            rounded_time(1e3 * row.times.latency.p99),
            rounded_time(row.operations_per_second() / 1e9),
            row.limit.operations_per_second > 0 ? Json(std::round(1000 * row.of_limit()) / 10) : Json(),
            std::round(static_cast<double>(row.weight_bytes + row.context_bytes) / 1e5) / 10,
            row.agreement ? Json(rounded_time(100 * row.agreement->error)) : Json(),
            row.agreement ? Json(std::round(1e4 * row.agreement->winners) / 100) : Json()};
        if (has_accuracy) cells.push_back(row.accuracy ? Json(std::round(1e4 * *row.accuracy) / 100) : Json());
        table.rows.push_back(std::move(cells));
    }
    return format_table(table, style);
}

}  // namespace stipple::cli
