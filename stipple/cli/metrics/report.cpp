#include "stipple/cli/metrics/report.h"

#include <algorithm>

#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

using metrics::MetricInfo;
using metrics::Protocol;
using metrics::Score;
using tasks::ReportedScore;
using tasks::ScoreReport;
using tasks::ShapeScores;

constexpr size_t kMostColumns = 8;  // scores of a table that still fits a screen

bool for_people(const std::string& style) {
    return style.empty() || style == "md";
}

/// Papers of these protocols print distances times 1000.
bool is_thousandth(Protocol protocol, const Score& score) {
    return protocol != Protocol::raw && (score.unit == "length" || score.unit == "length^2");
}

Json value_in(const std::vector<Score>& scores, const std::string& name, double factor = 1) {
    const Score* score = metrics::find(scores, name);
    return score ? Json(score->value * factor) : Json();
}

}  // namespace

Table score_table(const ScoreReport& report, const std::string& style) {
    const auto is_small = [&](const ReportedScore& row) { return is_thousandth(report.protocol, row.score); };
    const auto has = [&](const auto& which) { return std::any_of(report.scores.begin(), report.scores.end(), which); };
    const bool has_floor = report.floor.has_value();
    const bool has_thousandths = for_people(style) && has(is_small);
    Table table{{"score", "value"}, {}};
    if (has_floor) table.columns.push_back("floor");
    if (has_thousandths) table.columns.push_back("x1e-3");
    if (has_thousandths && has_floor) table.columns.push_back("floor x1e-3");
    for (const char* column : {"unit", "normalisation", "convention"}) table.columns.push_back(column);
    for (const ReportedScore& reported : report.scores) {
        const Score& score = reported.score;
        const auto floor = [&](double factor) { return reported.floor ? Json(*reported.floor * factor) : Json(); };
        std::vector<Json> row = {score.name, score.value};
        const bool thousandth = is_small(reported);
        if (has_floor) row.push_back(floor(1));
        if (has_thousandths) row.push_back(thousandth ? Json(1e3 * score.value) : Json());
        if (has_thousandths && has_floor) row.push_back(thousandth ? floor(1e3) : Json());
        for (const std::string& text : {score.unit, score.normalisation, score.convention}) row.push_back(text);
        table.rows.push_back(std::move(row));
    }
    return table;
}

Table shape_table(const ScoreReport& report, const std::string& style) {
    Table table{{"shape", "points", "truth"}, {}};
    std::vector<double> factors;
    std::vector<Score> all;
    for (const ReportedScore& reported : report.scores) {
        const bool thousandth = for_people(style) && is_thousandth(report.protocol, reported.score);
        all.push_back(reported.score);
        table.columns.push_back(thousandth ? all.back().name + " x1e-3" : all.back().name);
        factors.push_back(thousandth ? 1e3 : 1);
    }
    const auto add_row = [&](std::vector<Json> row, const std::vector<Score>& scores) {
        for (size_t i = 0; i < all.size(); ++i) row.push_back(value_in(scores, all[i].name, factors[i]));
        table.rows.push_back(std::move(row));
    };
    int64_t points = 0, truth = 0;
    for (const ShapeScores& shape : report.per_shape) {
        add_row({shape.shape, shape.found.prediction_points, shape.found.truth_points}, shape.found.scores);
        points += shape.found.prediction_points;
        truth += shape.found.truth_points;
    }
    add_row({fmt::format("all {}", report.shapes), points, truth}, all);
    return table;
}

std::string report_text(const ScoreReport& report) {
    const std::string_view protocol = metrics::name_of(report.protocol);
    std::string text;
    if (report.shapes == 1) {
        const ShapeScores& shape = report.per_shape[0];
        text = fmt::format("{} against {}{}: {} and {} points, protocol {}\n\n", printable(shape.prediction),
                           printable(shape.truth), shape.mesh ? " and " + printable(*shape.mesh) : "",
                           grouped(shape.found.prediction_points), grouped(shape.found.truth_points), protocol);
    } else if (report.scores.size() <= kMostColumns) {
        text = format_table(shape_table(report, ""), "") + "\n";
    } else {
        text = fmt::format("{} shapes, protocol {}; each of them: --table csv or --json\n\n", report.shapes, protocol);
    }
    text += format_table(score_table(report, ""), "");
    text += "\nd: from a point to the nearest one of the other cloud; p prediction, t truth.";
    if (report.shapes > 1) text += fmt::format(" Means over {} shapes, protocol {}.", report.shapes, protocol);
    text += "\n";
    if (report.floor) text += fmt::format("floor: {}\n", *report.floor);
    return text;
}

Result list_metrics(const Common& common) {
    Result result;
    result.fields = {{"inputs", Json::array()}, {"metrics", Json::array()}};
    Table table{{"metric", "group", "unit", "better", "formula", "used by"}, {}};
    for (const MetricInfo& info : metrics::registry()) {
        table.rows.push_back({info.name, info.group, info.unit, metrics::kBetterWords[static_cast<size_t>(info.better)],
                              info.formula, info.used_by});
        result.fields["metrics"].push_back({{"name", info.name},
                                            {"group", info.group},
                                            {"formula", info.formula},
                                            {"unit", info.unit},
                                            {"better", metrics::kBetterWords[static_cast<size_t>(info.better)]},
                                            {"over_shapes", info.across == metrics::Across::mean ? "mean" : "pooled"},
                                            {"used_by", info.used_by}});
    }
    result.text = format_table(table, common.table);
    if (common.table.empty())
        result.text +=
            "\nd: from a point to the nearest one of the other cloud; p prediction, t truth. This command computes the "
            "groups\nclouds, surface and spread; cd, hd and p2f are what the protocol calls by these names.\n";
    return result;
}

}  // namespace stipple::cli
