#pragma once
// Scores of a network that finds parts, for people, for --json and as a picture.

#include "stipple/cli/common/table.h"
#include "stipple/core/image.h"
#include "stipple/tasks/evaluate_parts.h"

namespace stipple::cli {

/// A row for each number of points.
Table part_score_table(const std::vector<tasks::PartScores>& scores, const std::string& sample);
/// A row for each category that has clouds: their number, their parts, and their IoU for each number of points.
Table category_table(const std::vector<tasks::PartScores>& scores);
/// `scores` of --json.
Json part_scores_json(const std::vector<tasks::PartScores>& scores);

/// Of one number of points a bar for each category, of several the means over their number.
Image draw_part_scores(const std::vector<tasks::PartScores>& scores, const std::string& title);

}  // namespace stipple::cli
