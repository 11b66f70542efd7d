#include "stipple/tasks/sampling_study/judge.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"
#include "stipple/data/class_names.h"
#include "stipple/metrics/classification.h"
#include "stipple/metrics/reconstruction.h"
#include "stipple/ops/chamfer.h"
#include "stipple/tasks/evaluate.h"

namespace stipple::tasks::study {
namespace {

using ops::Batch;

constexpr SamplingScoreColumn kScoreColumns[] = {
    {"accuracy", &SamplingScores::accuracy},       {"class_accuracy", &SamplingScores::class_accuracy},
    {"rotation", &SamplingScores::rotation},       {"rotation_median", &SamplingScores::rotation_median},
    {"below_5", &SamplingScores::below_5},         {"rotation_doubled", &SamplingScores::rotation_doubled},
    {"consistency", &SamplingScores::consistency}, {"nre", &SamplingScores::nre},
    {"chamfer", &SamplingScores::chamfer}};

Array<float, 2> copy_to(View<const float, 2> rows, Device device) {
    Array<float, 2> host({rows.size(0), rows.size(1)});
    std::copy_n(rows.data(), rows.elements(), host.data());
    return device == Device{} ? std::move(host) : host.to(device);
}

double mean_over(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

/// Of an even number the mean of the two in the middle.
double median_over(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void require_network(const NetworkRunner& runner, SamplingTask task) {
    const std::string& name = runner.source().name();
    const auto misfit = [&](const char* wanted) {
        throw Error(ErrorCode::bad_argument, Place{runner.source().path},
                    fmt::format("{} needs {}, the weights are of {}", title_of(task), wanted, name),
                    "stipple weights info shows what a file is");
    };
    if (task == SamplingTask::registration && name != "pcrnet") misfit("a pcrnet");
    if (task == SamplingTask::reconstruction && name != "autoencoder") misfit("an autoencoder");
    if (task != SamplingTask::classification) return;
    const engine::Program& program = runner.program();
    const network::TensorType* logits = find_type(program, program.outputs, "logits");
    if (!logits || logits->level != network::Level::cloud || program.inputs.size() != 1 ||
        program.inputs[0].name != "points")
        misfit("a network from points to logits of a cloud");
}

/// p of the template, where the motion is from source to template: R^T (p - t).
Array<float, 2> turned_back(const EqualClouds& clouds, const std::vector<metrics::Motion>& motions) {
    Array<float, 2> rows({clouds.rows.size(0), 3});
    for (int64_t c = 0; c < clouds.size(); ++c) {
        const metrics::Motion& motion = motions[static_cast<size_t>(c)];
        for (int64_t i = c * clouds.n; i < (c + 1) * clouds.n; ++i)
            for (size_t axis = 0; axis < 3; ++axis) {
                double sum = 0;
                for (size_t from = 0; from < 3; ++from)
                    sum += motion[4 * from + axis] * (clouds.rows(i, static_cast<int>(from)) - motion[4 * from + 3]);
                rows.view()(i, static_cast<int>(axis)) = static_cast<float>(sum);
            }
    }
    return rows;
}

/// What a pcrnet gives for a pair.
metrics::Motion motion_of(const float* rotation, const float* translation) {
    metrics::Motion motion = {};
    for (size_t row = 0; row < 3; ++row) {
        for (size_t column = 0; column < 3; ++column) motion[4 * row + column] = rotation[3 * row + column];
        motion[4 * row + 3] = translation[row];
    }
    motion[15] = 1;
    return motion;
}

}  // namespace

bool SamplingScores::is_empty() const {
    return std::all_of(std::begin(kScoreColumns), std::end(kScoreColumns),
                       [&](const SamplingScoreColumn& column) { return std::isnan(this->*column.member); });
}

std::span<const SamplingScoreColumn> sampling_score_columns() {
    return kScoreColumns;
}

double main_score(const SamplingScores& scores, SamplingTask task) {
    switch (task) {
        case SamplingTask::classification: return scores.accuracy;
        case SamplingTask::registration: return scores.rotation;
        case SamplingTask::reconstruction: return scores.nre;
    }
    STIPPLE_ASSERT(false);
}

std::vector<double> chamfer_distances(const EqualClouds& a, const EqualClouds& b, Device device, int64_t batch) {
    STIPPLE_REQUIRE(a.size() == b.size(), "{} clouds and {}", a.size(), b.size());
    std::vector<double> distances;
    for (int64_t begin = 0; begin < a.size(); begin += batch) {
        check_interrupted();
        const int64_t end = std::min(begin + batch, a.size()), count = end - begin;
        const Array<float, 2> from = copy_to(a.part(begin, end), device), to = copy_to(b.part(begin, end), device);
        Array<int32_t, 1> near_a({count * a.n}, device), near_b({count * b.n}, device), used_a({count}, device),
            used_b({count}, device);
        Array<float, 1> sq_a({count * a.n}, device), sq_b({count * b.n}, device), mean_a({count}, device),
            mean_b({count}, device);
        ops::chamfer(ops::Clouds(from.view(), Batch::dense(count, a.n)),
                     ops::Clouds(to.view(), Batch::dense(count, b.n)), ops::DistanceNorm::squared,
                     {near_a.view(), sq_a.view(), mean_a.view(), used_a.view()},
                     {near_b.view(), sq_b.view(), mean_b.view(), used_b.view()});
        const Array<float, 1> one = mean_a.to(Device{}), other = mean_b.to(Device{});
        for (int64_t i = 0; i < count; ++i) distances.push_back(double{one.data()[i]} + other.data()[i]);
    }
    return distances;
}

TaskJudge::TaskJudge(const std::string& weights, const data::DataSet& set, const SamplingClouds& clouds,
                     const RunnerOptions& options)
    : clouds_(clouds), runner_(load_model_or_engine(weights), options) {
    require_network(runner_, clouds.task);
    if (clouds.task != SamplingTask::classification) return;
    const ModelOrEngine& source = runner_.source();
    const int64_t count = find_type(runner_.program(), runner_.program().outputs, "logits")->channels;
    std::vector<std::string> names;
    if (source.metadata().contains("stipple.classes")) names = data::class_names(source.metadata(), "", count);
    const std::vector<int32_t> matched = match_classes(set, names, count);
    for (const int32_t label : clouds.labels) truth_.push_back(matched[static_cast<size_t>(label)]);
    class_names_ = names.empty() ? set.classes : names;
}

std::string TaskJudge::checksum() const {
    const ModelOrEngine& source = runner_.source();
    return source.model ? fmt::format("{:016x}", network::checksum(source.model->weights)) : source.path;
}

SamplingScores TaskJudge::score(const std::vector<Array<float, 2>>& looks, int64_t m) {
    STIPPLE_REQUIRE(static_cast<int>(looks.size()) == clouds_.looks(), "{} looks at {} clouds", looks.size(),
                    title_of(clouds_.task));
    for (const Array<float, 2>& look : looks)
        STIPPLE_REQUIRE(look.size(0) == clouds_.size() * m, "{} points for {} clouds of {}", look.size(0),
                        clouds_.size(), m);
    const EqualClouds few{looks[0].view(), m};
    switch (clouds_.task) {
        case SamplingTask::classification: return score_classes(few);
        case SamplingTask::registration: return score_poses(few, {looks[1].view(), m});
        case SamplingTask::reconstruction: return score_shapes(few);
    }
    STIPPLE_ASSERT(false);
}

SamplingScores TaskJudge::score_classes(const EqualClouds& few) {
    const Device device = runner_.device();
    const auto classes = static_cast<int64_t>(class_names_.size());
    std::vector<int32_t> answers;
    for (int64_t begin = 0; begin < few.size(); begin += runner_.max_batch()) {
        check_interrupted();
        const int64_t end = std::min(begin + runner_.max_batch(), few.size());
        const Array<float, 2> points = copy_to(few.part(begin, end), device);
        Array<float, 2> logits({end - begin, classes}, device);
        runner_.reserve(points.size(0))
            .run(Batch::dense(end - begin, few.n), {{"points", points.view()}}, {{"logits", logits.view()}});
        const Array<float, 2> host = logits.to(Device{});
        for (int64_t i = 0; i < end - begin; ++i) {
            const float* row = host.data() + i * classes;
            if (!std::all_of(row, row + classes, [](float x) { return std::isfinite(x); }))
                throw Error(ErrorCode::not_finite, Place{runner_.source().path}, "the network answers with no numbers");
            answers.push_back(static_cast<int32_t>(std::max_element(row, row + classes) - row));
        }
    }
    const metrics::Confusion confusion = metrics::confusion(answers, truth_, class_names_);
    SamplingScores scores;
    scores.accuracy = metrics::overall_accuracy(confusion);
    scores.class_accuracy = metrics::mean_accuracy(confusion);
    return scores;
}

SamplingScores TaskJudge::score_poses(const EqualClouds& sources, const EqualClouds& templates) {
    const Device device = runner_.device();
    std::vector<double> angles, doubled;
    for (int64_t begin = 0; begin < sources.size(); begin += runner_.max_batch()) {
        check_interrupted();
        const int64_t end = std::min(begin + runner_.max_batch(), sources.size()), count = end - begin;
        const Array<float, 2> source = copy_to(sources.part(begin, end), device),
                              target = copy_to(templates.part(begin, end), device);
        Array<float, 2> rotation({count, 9}, device), translation({count, 3}, device);
        runner_.reserve(source.size(0))
            .run({Batch::dense(count, sources.n), Batch::dense(count, templates.n)},
                 {{"source", source.view()}, {"template", target.view()}},
                 {{"rotation", rotation.view()}, {"translation", translation.view()}});
        const Array<float, 2> r = rotation.to(Device{}), t = translation.to(Device{});
        for (int64_t i = 0; i < count; ++i) {
            const metrics::Motion found = motion_of(r.data() + 9 * i, t.data() + 3 * i);
            if (!std::all_of(found.begin(), found.end(), [](double x) { return std::isfinite(x); }))
                throw Error(ErrorCode::not_finite, Place{runner_.source().path}, "the network answers with no numbers");
            const metrics::Motion& truth = clouds_.motions[static_cast<size_t>(begin + i)];
            angles.push_back(metrics::rotation_error(found, truth));
            doubled.push_back(metrics::rotation_error_doubled(found, truth));
        }
    }
    SamplingScores scores;
    scores.rotation = mean_over(angles);
    scores.rotation_median = median_over(angles);
    scores.below_5 = static_cast<double>(std::count_if(angles.begin(), angles.end(), [](double a) { return a < 5; })) /
                     static_cast<double>(angles.size());
    scores.rotation_doubled = mean_over(doubled);
    const Array<float, 2> back = turned_back(templates, clouds_.motions);
    scores.consistency = mean_over(chamfer_distances(sources, {back.view(), templates.n}, device, runner_.max_batch()));
    return scores;
}

std::vector<double> TaskJudge::reconstruction_errors(const EqualClouds& few) {
    const Device device = runner_.device();
    const int64_t made = find_type(runner_.program(), runner_.program().outputs, "reconstructed")->points;
    Array<float, 2> all({few.size() * made, 3});
    for (int64_t begin = 0; begin < few.size(); begin += runner_.max_batch()) {
        check_interrupted();
        const int64_t end = std::min(begin + runner_.max_batch(), few.size());
        const Array<float, 2> points = copy_to(few.part(begin, end), device);
        Array<float, 2> rebuilt({(end - begin) * made, 3}, device);
        runner_.reserve(points.size(0))
            .run(Batch::dense(end - begin, few.n), {{"points", points.view()}}, {{"reconstructed", rebuilt.view()}});
        const Array<float, 2> host = rebuilt.to(Device{});
        std::copy_n(host.data(), host.elements(), all.data() + 3 * begin * made);
    }
    return chamfer_distances({clouds_.points.view(), clouds_.n}, {all.view(), made}, device, runner_.max_batch());
}

SamplingScores TaskJudge::score_shapes(const EqualClouds& few) {
    if (whole_.empty()) whole_ = reconstruction_errors({clouds_.points.view(), clouds_.n});
    const std::vector<double> errors = reconstruction_errors(few);
    SamplingScores scores;
    scores.nre = metrics::normalised_reconstruction_error(errors, whole_);
    scores.chamfer = mean_over(errors);
    return scores;
}

}  // namespace stipple::tasks::study
