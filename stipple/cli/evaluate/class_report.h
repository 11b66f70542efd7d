#pragma once
// Scores of a classifier, for people, for --json and as files.

#include "stipple/cli/common/table.h"
#include "stipple/core/image.h"
#include "stipple/tasks/evaluate.h"

namespace stipple::cli {

/// A row for each number of points.
Table score_table(const std::vector<tasks::ClassScores>& scores, const std::string& sample);
/// A row for each class that occurs: clouds, and percent of them that are right, for each number of points.
Table class_table(const std::vector<tasks::ClassScores>& scores);
/// `scores` of --json.
Json scores_json(const std::vector<tasks::ClassScores>& scores);

/// Counts of all draws, rows the truth, for each number of points.
Table confusion_table(const std::vector<tasks::ClassScores>& scores);
/// "flower_pot taken for plant: 12 of 20" for the most frequent ones, `most` of them, with the first number of points.
std::string confusions_text(const tasks::ClassScores& scores, size_t most);

/// Of one number of points a bar for each class that occurs, of several the accuracies over their number.
Image draw_scores(const std::vector<tasks::ClassScores>& scores, const std::string& title);

}  // namespace stipple::cli
