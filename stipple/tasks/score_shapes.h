#pragma once
// Scores of shapes against their truth, by the protocol of a paper: what was asked for in words, and what was found of
// each shape and of all of them together.

#include <optional>

#include "stipple/data/shape_pairs.h"
#include "stipple/metrics/evaluate.h"
#include "stipple/metrics/score_choice.h"

namespace stipple::tasks {

struct ScoreOptions {
    metrics::Protocol protocol = metrics::Protocol::pu_gan;
    std::string wanted = {};                       // words for what is wanted: "cd,f_score"; "": what the protocol has
    double radius = 0;                             // of f_score; 0: 1 % of the truth's diagonal
    bool floor = false;                            // also what a perfect sampling of the surface would score
    std::string fail_above = {}, fail_below = {};  // limits of scores: "cd=0.0003,hd=0.01"
    bool drop_nonfinite = false;                   // points that are not finite are left out, else they are an error
};
const Fields& score_options_fields();

/// What the options mean, with seed and device left to be set.
struct ScorePlan {
    metrics::Protocol protocol{};
    metrics::ScoreChoice choice;
    std::vector<metrics::ScoreLimit> limits;
    metrics::EvaluateOptions evaluate;
};
/// Before a file is opened. Throws Error{bad_argument} for numbers out of range, for words that name no metric, and for
/// metrics that need the mesh that is not there.
ScorePlan plan_scores(const ScoreOptions& options, bool has_mesh);

/// One score with what a perfect sampling has.
struct ReportedScore {
    metrics::Score score;
    std::optional<double> floor = {};
};

struct ShapeScores {
    std::string shape, prediction, truth;  // the name, and paths
    std::optional<std::string> mesh = {};  // path
    metrics::Evaluation found = {};
};

struct ScoreReport {
    metrics::Protocol protocol{};
    int64_t shapes = 0;
    std::optional<std::string> floor = {};   // how it was drawn
    std::vector<ReportedScore> scores = {};  // over all shapes
    std::vector<ShapeScores> per_shape = {};
    std::optional<Error> failure = {};  // of the first limit that does not hold
};
const Fields& score_report_fields();

/// metrics::evaluate() of a pair. Throws as it does, without the name of its function.
metrics::Evaluation score_pair(const ScorePlan& plan, const PointCloud& prediction, const PointCloud& truth,
                               const Mesh* mesh);

/// Scores over all shapes, at least one, in the order of `found`; scores that were not chosen are left out, of the
/// shapes too. Throws Error{bad_argument} for a limit of a score that was not computed.
ScoreReport report_scores(const ScorePlan& plan, const std::vector<data::ShapePair>& pairs,
                          std::vector<metrics::Evaluation> found);

/// Notes of the evaluations, each once, with the shapes that it is about.
std::vector<std::string> notes_of(const ScoreReport& report);

/// The prediction with its errors as attributes error_to_truth and error_to_mesh, in place of others of these names;
/// `found` has none any more.
PointCloud with_errors(PointCloud prediction, metrics::Evaluation& found);

}  // namespace stipple::tasks
