#pragma once
// How scores are printed: always with their convention, normalisation and unit.

#include "stipple/cli/command.h"
#include "stipple/cli/common/table.h"
#include "stipple/data/shape_pairs.h"
#include "stipple/metrics/evaluate.h"

namespace stipple::cli {

/// Scores of many shapes and of all of them together; one pair of files is one shape.
struct MetricsReport {
    metrics::Protocol protocol{};
    std::vector<data::ShapePair> pairs;
    std::vector<metrics::Evaluation> shapes;    // of the pairs, with the scores that were chosen
    std::vector<metrics::Score> scores, floor;  // over the shapes
};

/// Where people read, lengths of the protocols that papers print so are multiplied by 1000 and their columns named
/// "x1e-3"; CSV and JSON hold plain numbers. `style` as format_table's.
Table score_table(const MetricsReport& report, const std::string& style);
/// A row for each shape and one for all.
Table shape_table(const MetricsReport& report, const std::string& style);

/// Both tables with what must be known to read them.
std::string report_text(const MetricsReport& report);
/// protocol, shapes, scores, per_shape, and floor where there is one.
Json report_json(const MetricsReport& report);
/// Notes of the evaluations, each once, with the shapes that it is about.
std::vector<std::string> report_notes(const MetricsReport& report);

/// --list: the registry.
Result list_metrics(const Common& common);

}  // namespace stipple::cli
