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

std::string statistics_text(const engine::TimeStatistics& ms) {
    return fmt::format("min {:.4g} ms, max {:.4g} ms, mean {:.4g} ms, median {:.4g} ms, p99 {:.4g} ms", ms.min, ms.max,
                       ms.mean, ms.median, ms.p99);
}

}  // namespace

Json bench_json(const tasks::EngineBenchRow& row, Device device) {
    Json object = to_json(tasks::engine_bench_row_fields(), &row);
    if (device.type == DeviceType::cuda) object.update(to_json(tasks::device_times_fields(), &row));
    return object;
}

std::string bench_summary(const tasks::EngineBenchRow& row, Device device) {
    const bool is_cuda = device.type == DeviceType::cuda;
    std::vector<std::pair<std::string, std::string>> pairs = {
        {"throughput", fmt::format("{:.6g} clouds/s (batch {}, {} points, {})", rounded_time(row.clouds_per_second),
                                   grouped(row.batch), grouped(row.points), name_of(row.precision))},
        {"latency", statistics_text(row.latency)}};
    if (is_cuda) {
        pairs.emplace_back("enqueue", statistics_text(row.enqueue));
        pairs.emplace_back("host to device", statistics_text(row.host_to_device));
        pairs.emplace_back("compute", statistics_text(row.compute));
        pairs.emplace_back("device to host", statistics_text(row.device_to_host));
    }
    pairs.emplace_back("runs", fmt::format("{} after warming up", grouped(row.runs)));
    pairs.emplace_back("total wall time", fmt::format("{:.4g} s", row.wall_seconds));
    if (is_cuda) pairs.emplace_back("total GPU time", fmt::format("{:.4g} s", row.device_seconds));
    std::string arithmetic = fmt::format("{:.4g} GFLOP/s", row.gflop_per_second);
    if (row.of_limit)
        arithmetic += fmt::format(", {:.1f} % of the {:.4g} that {} reaches", 100 * *row.of_limit,
                                  *row.limit_gflop_per_second, row.limit);
    pairs.emplace_back("arithmetic", arithmetic);
    std::string memory =
        fmt::format("weights {}, context {}", bytes_text(row.weight_bytes), bytes_text(row.context_bytes));
    if (is_cuda)
        memory += fmt::format("; the device's use grew by {} with inputs and outputs", bytes_text(row.device_bytes));
    pairs.emplace_back("peak memory", memory);
    if (row.error)
        pairs.emplace_back("beside fp32",
                           fmt::format("error {:.3g} % of the logits' spread, largest {:.3g}, same winner {:.2f} %",
                                       100 * *row.error, *row.max_error, 100 * *row.winners));
    if (row.accuracy) pairs.emplace_back("accuracy", fmt::format("{:.2f} %", 100 * *row.accuracy));
    return format_pairs(pairs, 0);
}

std::string bench_table(const std::vector<tasks::EngineBenchRow>& rows, const std::string& style) {
    bool has_accuracy = false;
    for (const tasks::EngineBenchRow& row : rows) has_accuracy |= row.accuracy.has_value();
    Table table{{"precision", "batch", "points", "clouds/s", "median (ms)", "p99 (ms)", "GFLOP/s", "of limit (%)",
                 "memory (MB)", "error (%)", "winner (%)"},
                {}};
    if (has_accuracy) table.columns.push_back("accuracy (%)");
    for (const tasks::EngineBenchRow& row : rows) {
        std::vector<Json> cells = {std::string(name_of(row.precision)),
                                   row.batch,
                                   row.points,
                                   rounded_time(row.clouds_per_second),
                                   rounded_time(row.latency.median),
                                   rounded_time(row.latency.p99),
                                   rounded_time(row.gflop_per_second),
                                   row.of_limit ? Json(std::round(1000 * *row.of_limit) / 10) : Json(),
                                   std::round(static_cast<double>(row.weight_bytes + row.context_bytes) / 1e5) / 10,
                                   row.error ? Json(rounded_time(100 * *row.error)) : Json(),
                                   row.winners ? Json(std::round(1e4 * *row.winners) / 100) : Json()};
        if (has_accuracy) cells.push_back(row.accuracy ? Json(std::round(1e4 * *row.accuracy) / 100) : Json());
        table.rows.push_back(std::move(cells));
    }
    return format_table(table, style);
}

}  // namespace stipple::cli
