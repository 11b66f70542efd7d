#pragma once
// What `stipple engine bench` measured, for people and for --json.

#include "stipple/cli/command.h"
#include "stipple/tasks/bench_engine.h"

namespace stipple::cli {

Json bench_json(const tasks::EngineBenchRow& row, Device device);
/// The summary of one row.
std::string bench_summary(const tasks::EngineBenchRow& row, Device device);
/// All rows in one table; `style` as format_table's.
std::string bench_table(const std::vector<tasks::EngineBenchRow>& rows, const std::string& style);

}  // namespace stipple::cli
