#include "stipple/learn/finish.h"

#include <algorithm>
#include <ctime>

#include "stipple/data/class_names.h"
#include "stipple/learn/train.h"
#include "stipple/network/card.h"
#include "stipple/tasks/fit_confidence.h"
#include "stipple/tasks/fit_likeness.h"

namespace stipple::learn {
namespace {

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm date{};
    ::gmtime_r(&now, &date);
    return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

/// Of the last folder of a path: where the data lay is nobody's concern.
std::string base_name(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path.substr(path.rfind('/') + 1);
}

network::Card card_for(const Recipe& recipe, const TrainReport& report, const FinishOptions& options) {
    network::Card card;
    card.recipe = recipe.name;
    const std::string split = recipe.data.split.empty() ? "train" : recipe.data.split;
    card.data = fmt::format("{}{}{}", base_name(recipe.data.folder),
                            recipe.task == TrainingTask::upsampling ? ", meshes" : ", split " + split,
                            recipe.data.held_out > 0 ? fmt::format(", {} of it held out", recipe.data.held_out) : "");
    card.commit = options.commit;
    card.command = options.command;
    card.seed = static_cast<int64_t>(recipe.run.seed);
    for (const auto& [name, value] : report.scores) card.metrics.emplace(name, value);
    card.date = today();
    return card;
}

void add_confidence(const Recipe& recipe, const data::DataSet& set, const TrainReport& report,
                    const FinishOptions& options, network::Weights& weights) {
    tasks::Classifier classifier(tasks::load_model_or_engine(report.weights),
                                 {.device = options.device, .batch = 32, .points = recipe.data.points});
    const tasks::ConfidenceSizes sizes;
    Progress progress("fit confidence", set.size() * 2 * static_cast<int64_t>(sizes.points.size()), options.progress,
                      "clouds");
    tasks::set_confidence(weights.metadata, tasks::fit_confidence(classifier, set, sizes, {}, [&] { progress.add(); }));
    progress.finish();
}

/// Names of the classes of items, by label.
std::vector<std::string> classes_of(const data::DataSet& set, const std::vector<int64_t>& items) {
    std::vector<std::string> names;
    for (size_t label = 0; label < set.classes.size(); ++label)
        if (std::any_of(items.begin(), items.end(), [&](int64_t item) {
                return set.labels[static_cast<size_t>(item)] == static_cast<int32_t>(label);
            }))
            names.push_back(set.classes[label]);
    return names;
}

void add_likeness(const LabelData& data, const TrainReport& report, const FinishOptions& options,
                  network::Weights& weights) {
    constexpr size_t kEnough = 100;  // for the quantile
    const bool is_unseen = !data.validation && data.held_out.size() >= kEnough;
    const std::vector<int64_t>& items = is_unseen ? data.held_out : data.train;
    tasks::Reconstructor reconstructor(tasks::load_model_or_engine(report.weights),
                                       {.device = options.device, .points = tasks::kMostSeen});
    const tasks::LikenessSizes sizes;
    Progress progress("fit likeness", static_cast<int64_t>(2 * items.size() * sizes.points.size()), options.progress,
                      "clouds");
    tasks::LikenessOptions how;
    if (is_unseen) how.slack = 1;
    tasks::set_likeness(weights.metadata, tasks::fit_likeness(tasks::likeness_clouds(reconstructor, data.set, items,
                                                                                     sizes, [&] { progress.add(); }),
                                                              how));
    progress.finish();
    if (!data.set.classes.empty() && !data.set.labels.empty())
        data::set_class_names(weights.metadata, classes_of(data.set, items));
}

}  // namespace

void finish_weights(const Recipe& recipe, const LabelData* data, TrainReport& report, const FinishOptions& options) {
    network::Weights weights = network::load_weights(report.weights);
    network::set_card(weights, card_for(recipe, report, options));
    if (data && recipe.run.confidence) {
        try {
            if (recipe.task == TrainingTask::classification)
                add_confidence(recipe, data->set, report, options, weights);
            if (recipe.task == TrainingTask::reconstruction) add_likeness(*data, report, options, weights);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_argument && error.code() != ErrorCode::bad_file) throw;
            report.warnings.push_back(fmt::format("no measure of confidence: {}", error.message()));
        }
    }
    network::save_weights(report.weights, weights, recipe.run.storage, Overwrite::allow);
}

const Fields& train_report_fields() {
    using Report = TrainReport;
    static const Fields fields = {
        field<&Report::epochs>("epochs", "Epochs of the run"),
        field<&Report::steps>("steps", "Steps of the run"),
        field<&Report::skipped>("skipped_steps", "Steps whose loss or gradient was not finite"),
        field<&Report::is_complete>("complete", "Whether it came to its end"),
        field<&Report::stopped_early>("stopped_early", "Whether evaluations did not become better"),
        field<&Report::weights>("weights", "Where the weights are; empty unless it is complete")};
    return fields;
}

}  // namespace stipple::learn
