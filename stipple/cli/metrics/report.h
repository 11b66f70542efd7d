#pragma once
// How scores are printed: always with their convention, normalisation and unit.

#include "stipple/cli/command.h"
#include "stipple/cli/common/table.h"
#include "stipple/tasks/score_shapes.h"

namespace stipple::cli {

/// Where people read, lengths of the protocols that papers print so are multiplied by 1000 and their columns named
/// "x1e-3"; CSV and JSON hold plain numbers. `style` as format_table's.
Table score_table(const tasks::ScoreReport& report, const std::string& style);
/// A row for each shape and one for all.
Table shape_table(const tasks::ScoreReport& report, const std::string& style);

/// Both tables with what must be known to read them.
std::string report_text(const tasks::ScoreReport& report);
/// --list: the registry.
Result list_metrics(const Common& common);

}  // namespace stipple::cli
