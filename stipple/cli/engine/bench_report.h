#pragma once
// What `stipple engine bench` measured, for people and for --json.

#include "stipple/cli/command.h"
#include "stipple/engine/time_engine.h"
#include "stipple/tasks/agreement.h"

namespace stipple::cli {

/// The machine's measured limit for a precision.
struct MachineLimit {
    double operations_per_second = 0;  // 0: not known
    std::string what;                  // "fmla on 2 threads"
};

struct BenchRow {
    engine::Precision precision = engine::Precision::fp32;
    Device device;
    int64_t batch = 0, points = 0;
    int64_t multiply_adds = 0;  // of a cloud, as compiled
    int64_t weight_bytes = 0, context_bytes = 0;
    engine::EngineTimes times;
    MachineLimit limit;
    std::optional<tasks::Agreement> agreement = {};  // with fp32
    std::optional<double> accuracy = {};             // where labels are known

    double operations_per_second() const { return 2.0 * static_cast<double>(multiply_adds) * times.clouds_per_second; }
    double of_limit() const {
        return limit.operations_per_second > 0 ? operations_per_second() / limit.operations_per_second : 0;
    }
    /// Above this the times vary too much to be trusted.
    static constexpr double kHighVariation = 0.05;
};

Json bench_json(const BenchRow& row);
/// The summary of one row.
std::string bench_summary(const BenchRow& row);
/// All rows in one table; `style` as format_table's.
std::string bench_table(const std::vector<BenchRow>& rows, const std::string& style);

}  // namespace stipple::cli
