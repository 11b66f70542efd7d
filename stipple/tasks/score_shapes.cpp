#include "stipple/tasks/score_shapes.h"

#include <algorithm>

#include "stipple/core/terminal.h"

namespace stipple::tasks {
namespace {

using metrics::Evaluation;
using metrics::Extra;
using metrics::Score;

const Fields& reported_score_fields() {
    static const Fields fields = {
        object_field<&ReportedScore::score>("", metrics::score_fields),
        field<&ReportedScore::floor>("floor", "What a perfect sampling of the surface scores")};
    return fields;
}

Json by_name(const std::vector<Score>& scores) {
    Json object = Json::object();
    for (const Score& score : scores) object[score.name] = score.value;
    return object;
}

const Fields& shape_scores_fields() {
    static const Fields fields = {
        field<&ShapeScores::shape>("shape", "Name of the shape"),
        field<&ShapeScores::prediction>("prediction", "Path of the cloud"),
        field<&ShapeScores::truth>("truth", "Path of what it should be"),
        field<&ShapeScores::mesh>("mesh", "Path of the true surface"),
        field<&ShapeScores::found, &Evaluation::prediction_points>("points", "Finite points of the cloud"),
        field<&ShapeScores::found, &Evaluation::truth_points>("truth_points", "Finite points of the truth"),
        computed_field<ShapeScores>("scores", "Its scores, by name",
                                    [](const ShapeScores& shape) { return by_name(shape.found.scores); }),
        computed_field<ShapeScores>("floor", "What a perfect sampling scores, by name", [](const ShapeScores& shape) {
            return shape.found.floor.empty() ? Json() : by_name(shape.found.floor);
        })};
    return fields;
}

/// Leaves the scores that were asked for.
void keep_chosen(const metrics::ScoreChoice& choice, std::vector<Score>& scores) {
    std::erase_if(scores, [&](const Score& score) { return !choice.has(score); });
}

}  // namespace

const Fields& score_options_fields() {
    using Options = ScoreOptions;
    static const Fields fields = {
        field<&Options::protocol>("protocol", "How clouds are normalised and what cd and hd mean")
            .words(metrics::kProtocolWords),
        field<&Options::wanted>("metrics", "Only these: cd,hd,p2f,f_score,emd ... (--list)"),
        field<&Options::radius>("radius", "Of f_score; 0: 1 % of the truth's diagonal").from(0),
        field<&Options::floor>("floor", "Also what a perfect sampling of the surface would score"),
        field<&Options::fail_above>("fail_above", "Exit 7 when a score is above: cd=0.0003,hd=0.01"),
        field<&Options::fail_below>("fail_below", "Exit 7 when a score is below: f_score=0.95"),
        field<&Options::drop_nonfinite>("drop_nonfinite", "Leave out points with NaN or infinite coordinates")};
    return fields;
}

ScorePlan plan_scores(const ScoreOptions& options, bool has_mesh) {
    check_fields(score_options_fields(), &options);
    ScorePlan plan;
    plan.protocol = options.protocol;
    plan.choice = metrics::parse_choice("--metrics", options.wanted, plan.protocol);
    plan.limits = metrics::parse_limits("--fail-above", options.fail_above, false, plan.protocol);
    for (metrics::ScoreLimit& limit : metrics::parse_limits("--fail-below", options.fail_below, true, plan.protocol))
        plan.limits.push_back(std::move(limit));
    metrics::EvaluateOptions& evaluate = plan.evaluate;
    evaluate.extras = metrics::extras_for(plan.choice, plan.limits, plan.protocol);
    evaluate.only_extras = !plan.choice.words.empty();
    const auto has = [&](Extra extra) {
        return std::find(evaluate.extras.begin(), evaluate.extras.end(), extra) != evaluate.extras.end();
    };
    if (options.radius > 0 && plan.choice.words.empty() && !has(Extra::f_score))
        evaluate.extras.push_back(Extra::f_score);
    STIPPLE_REQUIRE(options.radius == 0 || has(Extra::f_score), "--radius is for f_score, which --metrics leaves out");
    for (const std::string& word : plan.choice.words)
        STIPPLE_REQUIRE(word != "p2f" || has_mesh, "the metric p2f needs --mesh");
    for (const Extra extra : {Extra::surface, Extra::uniformity, Extra::nuc})
        STIPPLE_REQUIRE(!has(extra) || has_mesh, "the metric {} needs --mesh", metrics::name_of(extra));
    evaluate.f_score_radius = options.radius;
    evaluate.floor = options.floor;
    if (options.drop_nonfinite) evaluate.nonfinite = metrics::NonFinite::leave_out;
    return plan;
}

const Fields& score_report_fields() {
    using Report = ScoreReport;
    static const Fields fields = {
        field<&Report::protocol>("protocol", "How clouds were normalised").words(metrics::kProtocolWords),
        field<&Report::shapes>("shapes", "Pairs of clouds"),
        field<&Report::floor>("floor", "How a perfect sampling was drawn"),
        objects_field<&Report::scores>("scores", reported_score_fields, "Over all shapes"),
        objects_field<&Report::per_shape>("per_shape", shape_scores_fields, "Of each shape")};
    return fields;
}

Evaluation score_pair(const ScorePlan& plan, const PointCloud& prediction, const PointCloud& truth, const Mesh* mesh) {
    try {
        return metrics::evaluate(prediction, truth, mesh, plan.protocol, plan.evaluate);
    } catch (const Error& error) {  // the library knows its function, the user knows the file
        constexpr std::string_view kFunction = "evaluate: ";
        const std::string& message = error.message();
        if (error.code() != ErrorCode::bad_argument || !message.starts_with(kFunction)) throw;
        throw Error(error.code(), message.substr(kFunction.size()), error.hint());
    }
}

ScoreReport report_scores(const ScorePlan& plan, const std::vector<data::ShapePair>& pairs,
                          std::vector<Evaluation> found) {
    STIPPLE_ASSERT(!found.empty() && found.size() == pairs.size());
    const bool is_one = found.size() == 1;
    std::vector<Score> scores = is_one ? found[0].scores : metrics::over_shapes(found);
    const std::vector<Score> floor = is_one ? found[0].floor : metrics::floor_over_shapes(found);
    ScoreReport report{.protocol = plan.protocol, .shapes = static_cast<int64_t>(pairs.size())};
    if (!found[0].floor_text.empty()) report.floor = found[0].floor_text;
    report.failure = metrics::check_limits(plan.limits, scores);
    keep_chosen(plan.choice, scores);
    for (Score& score : scores) {
        const Score* perfect = metrics::find(floor, score.name);
        report.scores.push_back({std::move(score), perfect ? std::optional(perfect->value) : std::nullopt});
    }
    for (size_t i = 0; i < pairs.size(); ++i) {
        keep_chosen(plan.choice, found[i].scores);
        keep_chosen(plan.choice, found[i].floor);
        ShapeScores& shape = report.per_shape.emplace_back(
            ShapeScores{.shape = pairs[i].shape, .prediction = pairs[i].prediction, .truth = pairs[i].truth});
        if (!pairs[i].mesh.empty()) shape.mesh = pairs[i].mesh;
        shape.found = std::move(found[i]);
    }
    return report;
}

std::vector<std::string> notes_of(const ScoreReport& report) {
    std::vector<std::pair<std::string, std::vector<std::string>>> notes;  // and the shapes that have it
    for (const ShapeScores& shape : report.per_shape)
        for (const std::string& note : shape.found.notes) {
            const auto known = std::find_if(notes.begin(), notes.end(), [&](const auto& n) { return n.first == note; });
            if (known == notes.end())
                notes.push_back({note, {shape.shape}});
            else
                known->second.push_back(shape.shape);
        }
    std::vector<std::string> lines;
    for (const auto& [note, shapes] : notes) {
        std::string about = printable(shapes[0]);
        if (shapes.size() > 1) about += fmt::format(" and {} more shapes", shapes.size() - 1);
        lines.push_back(fmt::format("{}: {}", about, note));
    }
    return lines;
}

PointCloud with_errors(PointCloud prediction, Evaluation& found) {
    const auto add = [&](const char* name, Array<float, 1>& errors) {
        if (errors.size(0) == 0) return;
        std::erase_if(prediction.attributes, [&](const Attribute& attribute) { return attribute.name() == name; });
        Attribute& attribute = prediction.attributes.emplace_back(name, DType::f32, errors.size(0), 1);
        std::copy(errors.span().begin(), errors.span().end(), attribute.as<float>().data());
        errors = {};
    };
    add("error_to_truth", found.error_to_truth);
    add("error_to_mesh", found.error_to_mesh);
    return prediction;
}

}  // namespace stipple::tasks
