#include "stipple/cli/evaluate/class_report.h"

#include <algorithm>

#include "stipple/cli/evaluate/draw_scores.h"
#include "stipple/core/terminal.h"

namespace stipple::cli {

using tasks::ClassAccuracy;
using tasks::ClassScores;

Table score_table(const std::vector<ClassScores>& scores, const std::string& sample) {
    Table table{
        {"points", "sample", "draws", "accuracy (%)", "deviation", "mean class accuracy (%)", "class deviation"}, {}};
    for (const ClassScores& row : scores)
        table.rows.push_back({points_text(row), sample, row.draws, percent(row.accuracy.mean),
                              percent(row.accuracy.deviation), percent(row.class_accuracy.mean),
                              percent(row.class_accuracy.deviation)});
    return table;
}

Table class_table(const std::vector<ClassScores>& scores) {
    Table table{{"class", "clouds"}, {}};
    for (const ClassAccuracy& one : tasks::class_accuracies(scores[0])) table.rows.push_back({one.name, one.clouds});
    for (const ClassScores& column : scores) {
        table.columns.push_back(fmt::format("{} points (%)", points_text(column)));
        const std::vector<ClassAccuracy> classes = tasks::class_accuracies(column);
        for (size_t i = 0; i < classes.size(); ++i) table.rows[i].push_back(percent(classes[i].accuracy));
    }
    return table;
}

Json scores_json(const std::vector<ClassScores>& scores) {
    Json list = Json::array();
    for (const ClassScores& row : scores) list.push_back(to_json(tasks::class_scores_fields(), &row));
    return list;
}

Table confusion_table(const std::vector<ClassScores>& scores) {
    Table table{{"points", "truth"}, {}};
    const std::vector<std::string>& names = scores[0].confusion.classes;
    table.columns.insert(table.columns.end(), names.begin(), names.end());
    for (const ClassScores& block : scores) {
        for (int64_t i = 0; i < block.confusion.counts.size(0); ++i) {
            std::vector<Json> row = {points_text(block), names[static_cast<size_t>(i)]};
            for (size_t j = 0; j < names.size(); ++j)
                row.push_back(block.confusion.counts.view()(i, static_cast<int64_t>(j)));
            table.rows.push_back(std::move(row));
        }
    }
    return table;
}

std::string confusions_text(const ClassScores& scores, size_t most) {
    struct Pair {
        int64_t truth, found, count;
    };
    const metrics::Confusion& confusion = scores.confusion;
    std::vector<Pair> pairs;
    for (int64_t i = 0; i < confusion.counts.size(0); ++i)
        for (int64_t j = 0; j < confusion.counts.size(0); ++j)
            if (i != j && confusion.counts.view()(i, j) > 0) pairs.push_back({i, j, confusion.counts.view()(i, j)});
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
    if (pairs.size() > most) pairs.resize(most);
    std::string text;
    for (const Pair& pair : pairs)
        text +=
            fmt::format("  {} taken for {}: {} of {}\n", printable(confusion.classes[static_cast<size_t>(pair.truth)]),
                        printable(confusion.classes[static_cast<size_t>(pair.found)]), grouped(pair.count),
                        grouped(tasks::clouds_of_class(confusion, pair.truth)));
    return text.empty() ? text : fmt::format("largest confusions, {} points:\n{}", points_text(scores), text);
}

Image draw_scores(const std::vector<ClassScores>& scores, const std::string& title) {
    if (scores.size() > 1) {
        std::vector<double> points, overall, by_class;
        for (const ClassScores& row : scores) {
            points.push_back(static_cast<double>(row.most));
            overall.push_back(row.accuracy.mean);
            by_class.push_back(row.class_accuracy.mean);
        }
        return draw_over_points(title, "accuracy", points,
                                {{"overall accuracy", overall}, {"mean class accuracy", by_class}});
    }
    std::vector<std::string> names;
    std::vector<double> values;
    for (const ClassAccuracy& one : tasks::class_accuracies(scores[0])) {
        names.push_back(one.name);
        values.push_back(one.accuracy);
    }
    return draw_by_name(fmt::format("{}, {} points", title, points_text(scores[0])), "accuracy", names, values);
}

}  // namespace stipple::cli
