#include "stipple/cli/metrics/report.h"

#include <algorithm>

#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

using metrics::Better;
using metrics::Evaluation;
using metrics::MetricInfo;
using metrics::Protocol;
using metrics::Score;

constexpr size_t kColumns = 8;  // scores of a table that still fits a screen

const char* better_text(Better better) {
    return better == Better::lower ? "lower" : better == Better::higher ? "higher" : "neither";
}

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

Json scores_json(const std::vector<Score>& scores) {
    Json object = Json::object();
    for (const Score& score : scores) object[score.name] = score.value;
    return object;
}

}  // namespace

Table score_table(const MetricsReport& report, const std::string& style) {
    const bool has_floor = !report.floor.empty();
    const bool has_thousandths =
        for_people(style) && std::any_of(report.scores.begin(), report.scores.end(),
                                         [&](const Score& score) { return is_thousandth(report.protocol, score); });
    Table table{{"score", "value"}, {}};
    if (has_floor) table.columns.push_back("floor");
    if (has_thousandths) table.columns.push_back("x1e-3");
    if (has_thousandths && has_floor) table.columns.push_back("floor x1e-3");
    for (const char* column : {"unit", "normalisation", "convention"}) table.columns.push_back(column);
    for (const Score& score : report.scores) {
        std::vector<Json> row = {score.name, score.value};
        const bool thousandth = is_thousandth(report.protocol, score);
        if (has_floor) row.push_back(value_in(report.floor, score.name));
        if (has_thousandths) row.push_back(thousandth ? Json(1e3 * score.value) : Json());
        if (has_thousandths && has_floor) row.push_back(thousandth ? value_in(report.floor, score.name, 1e3) : Json());
        for (const std::string& text : {score.unit, score.normalisation, score.convention}) row.push_back(text);
        table.rows.push_back(std::move(row));
    }
    return table;
}

Table shape_table(const MetricsReport& report, const std::string& style) {
    Table table{{"shape", "points", "truth"}, {}};
    std::vector<double> factors;
    for (const Score& score : report.scores) {
        const bool thousandth = for_people(style) && is_thousandth(report.protocol, score);
        table.columns.push_back(thousandth ? score.name + " x1e-3" : score.name);
        factors.push_back(thousandth ? 1e3 : 1);
    }
    const auto add_row = [&](std::vector<Json> row, const std::vector<Score>& scores) {
        for (size_t i = 0; i < report.scores.size(); ++i)
            row.push_back(value_in(scores, report.scores[i].name, factors[i]));
        table.rows.push_back(std::move(row));
    };
    int64_t points = 0, truth = 0;
    for (size_t i = 0; i < report.shapes.size(); ++i) {
        const Evaluation& shape = report.shapes[i];
        add_row({report.pairs[i].shape, shape.prediction_points, shape.truth_points}, shape.scores);
        points += shape.prediction_points;
        truth += shape.truth_points;
    }
    add_row({fmt::format("all {}", report.shapes.size()), points, truth}, report.scores);
    return table;
}

std::string report_text(const MetricsReport& report) {
    const std::string_view protocol = metrics::name_of(report.protocol);
    std::string text;
    if (report.shapes.size() == 1) {
        const Evaluation& shape = report.shapes[0];
        text = fmt::format("{} against {}{}: {} and {} points, protocol {}\n\n", printable(report.pairs[0].prediction),
                           printable(report.pairs[0].truth),
                           report.pairs[0].mesh.empty() ? "" : " and " + printable(report.pairs[0].mesh),
                           grouped(shape.prediction_points), grouped(shape.truth_points), protocol);
    } else if (report.scores.size() <= kColumns) {
        text = format_table(shape_table(report, ""), "") + "\n";
    } else {
        text = fmt::format("{} shapes, protocol {}; each of them: --table csv or --json\n\n", report.shapes.size(),
                           protocol);
    }
    text += format_table(score_table(report, ""), "");
    text += "\nd: from a point to the nearest one of the other cloud; p prediction, t truth.";
    if (report.shapes.size() > 1)
        text += fmt::format(" Means over {} shapes, protocol {}.", report.shapes.size(), protocol);
    text += "\n";
    if (!report.shapes[0].floor_text.empty()) text += fmt::format("floor: {}\n", report.shapes[0].floor_text);
    return text;
}

Json report_json(const MetricsReport& report) {
    Json fields = {{"protocol", metrics::name_of(report.protocol)}, {"shapes", report.shapes.size()}};
    if (!report.shapes[0].floor_text.empty()) fields["floor"] = report.shapes[0].floor_text;
    fields["scores"] = Json::array();
    for (const Score& score : report.scores) {
        Json entry = {{"name", score.name},
                      {"metric", score.metric},
                      {"value", score.value},
                      {"unit", score.unit},
                      {"convention", score.convention},
                      {"normalisation", score.normalisation},
                      {"better", better_text(score.better)},
                      {"shapes", score.shapes}};
        if (!report.floor.empty()) entry["floor"] = value_in(report.floor, score.name);
        fields["scores"].push_back(std::move(entry));
    }
    fields["per_shape"] = Json::array();
    for (size_t i = 0; i < report.shapes.size(); ++i) {
        const Evaluation& shape = report.shapes[i];
        const data::ShapePair& pair = report.pairs[i];
        Json entry = {{"shape", pair.shape}, {"prediction", pair.prediction}, {"truth", pair.truth}};
        if (!pair.mesh.empty()) entry["mesh"] = pair.mesh;
        entry["points"] = shape.prediction_points;
        entry["truth_points"] = shape.truth_points;
        entry["scores"] = scores_json(shape.scores);
        if (!shape.floor.empty()) entry["floor"] = scores_json(shape.floor);
        fields["per_shape"].push_back(std::move(entry));
    }
    return fields;
}

std::vector<std::string> report_notes(const MetricsReport& report) {
    std::vector<std::pair<std::string, std::vector<std::string>>> notes;  // and the shapes that have it
    for (size_t i = 0; i < report.shapes.size(); ++i)
        for (const std::string& note : report.shapes[i].notes) {
            const auto known = std::find_if(notes.begin(), notes.end(), [&](const auto& n) { return n.first == note; });
            if (known == notes.end())
                notes.push_back({note, {report.pairs[i].shape}});
            else
                known->second.push_back(report.pairs[i].shape);
        }
    std::vector<std::string> lines;
    for (const auto& [note, shapes] : notes) {
        std::string who = printable(shapes[0]);
        if (shapes.size() > 1) who += fmt::format(" and {} more shapes", shapes.size() - 1);
        lines.push_back(fmt::format("{}: {}", who, note));
    }
    return lines;
}

Result list_metrics(const Common& common) {
    Result result;
    result.fields = {{"inputs", Json::array()}, {"metrics", Json::array()}};
    Table table{{"metric", "group", "unit", "better", "formula", "used by"}, {}};
    for (const MetricInfo& info : metrics::registry()) {
        table.rows.push_back({info.name, info.group, info.unit, better_text(info.better), info.formula, info.used_by});
        result.fields["metrics"].push_back({{"name", info.name},
                                            {"group", info.group},
                                            {"formula", info.formula},
                                            {"unit", info.unit},
                                            {"better", better_text(info.better)},
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
