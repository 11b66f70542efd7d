#include "stipple/cli/evaluate/part_report.h"

#include "stipple/cli/evaluate/draw_scores.h"

namespace stipple::cli {

using tasks::PartScores;

Table part_score_table(const std::vector<PartScores>& scores, const std::string& sample) {
    Table table{{"points", "sample", "draws", "instance mIoU (%)", "deviation", "class mIoU (%)", "class deviation",
                 "point accuracy (%)"},
                {}};
    for (const PartScores& row : scores)
        table.rows.push_back({points_text(row), sample, row.draws, percent(row.instance_iou.mean),
                              percent(row.instance_iou.deviation), percent(row.class_iou.mean),
                              percent(row.class_iou.deviation), percent(row.accuracy.mean)});
    return table;
}

Table category_table(const std::vector<PartScores>& scores) {
    Table table{{"category", "clouds", "parts"}, {}};
    for (const tasks::CategoryScore& one : tasks::category_scores(scores[0]))
        table.rows.push_back({one.name, one.clouds, one.parts});
    for (const PartScores& column : scores) {
        table.columns.push_back(fmt::format("mIoU, {} points (%)", points_text(column)));
        for (size_t c = 0; c < table.rows.size(); ++c) table.rows[c].push_back(percent(column.category_iou[c]));
    }
    return table;
}

Json part_scores_json(const std::vector<PartScores>& scores) {
    Json list = Json::array();
    for (const PartScores& row : scores) list.push_back(to_json(tasks::part_scores_fields(), &row));
    return list;
}

Image draw_part_scores(const std::vector<PartScores>& scores, const std::string& title) {
    if (scores.size() > 1) {
        std::vector<double> points, instance, by_class;
        for (const PartScores& row : scores) {
            points.push_back(static_cast<double>(row.most));
            instance.push_back(row.instance_iou.mean);
            by_class.push_back(row.class_iou.mean);
        }
        return draw_over_points(title, "mIoU", points, {{"instance mIoU", instance}, {"class mIoU", by_class}});
    }
    std::vector<std::string> names;
    for (const metrics::PartCategory& category : scores[0].categories) names.push_back(category.name);
    return draw_by_name(fmt::format("{}, {} points", title, points_text(scores[0])), "mIoU", names,
                        scores[0].category_iou);
}

}  // namespace stipple::cli
