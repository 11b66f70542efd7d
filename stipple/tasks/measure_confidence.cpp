#include "stipple/tasks/measure_confidence.h"

#include "stipple/data/class_names.h"
#include "stipple/tasks/fit_confidence.h"
#include "stipple/tasks/fit_likeness.h"

namespace stipple::tasks {
namespace {

/// What a classifier's answers are worth; the clouds that it was measured on.
int64_t add_confidence(ModelOrEngine source, const data::DataSet& set, const MeasureConfidenceOptions& options,
                       network::Weights& weights, const std::function<void(int64_t total)>& advance) {
    Classifier classifier(std::move(source), {.device = options.device});
    const ConfidenceSizes sizes;
    const int64_t total = set.size() * 2 * static_cast<int64_t>(sizes.points.size());
    set_confidence(weights.metadata, fit_confidence(classifier, set, sizes, {}, [&] {
                       if (advance) advance(total);
                   }));
    return set.size();
}

/// What an autoencoder cannot rebuild, by clouds of the classes that are named, else of those that the weights name.
int64_t add_likeness(ModelOrEngine source, const data::DataSet& set, const MeasureConfidenceOptions& options,
                     network::Weights& weights, const std::function<void(int64_t total)>& advance) {
    Reconstructor reconstructor(std::move(source), {.device = options.device, .points = kMostSeen});
    std::vector<std::string> classes = options.classes;
    if (classes.empty()) classes = reconstructor.classes();
    const std::vector<int64_t> items = items_of_classes(set, classes);
    const LikenessSizes sizes;
    const auto total = static_cast<int64_t>(2 * items.size() * sizes.points.size());
    LikenessOptions how;
    if (options.unseen) how.slack = 1;
    const std::vector<LikenessClouds> clouds = likeness_clouds(reconstructor, set, items, sizes, [&] {
        if (advance) advance(total);
    });
    set_likeness(weights.metadata, fit_likeness(clouds, how));
    if (classes.empty()) classes = set.classes;
    if (!classes.empty()) data::set_class_names(weights.metadata, classes);
    return static_cast<int64_t>(items.size());
}

}  // namespace

const Fields& measure_confidence_fields() {
    using Options = MeasureConfidenceOptions;
    static const Fields fields = {
        field<&Options::classes>("classes", "autoencoders: those it was trained on, by name").shown("NAME..."),
        field<&Options::unseen>("unseen", "autoencoders: it was not trained on these very clouds")};
    return fields;
}

const Fields& measured_confidence_fields() {
    static const Fields fields = {field<&MeasuredConfidence::clouds>("clouds", "Clouds that it was measured on")};
    return fields;
}

MeasuredConfidence measure_confidence(ModelOrEngine source, const data::DataSet& set,
                                      const MeasureConfidenceOptions& options, network::Weights& weights,
                                      const std::function<void(int64_t total)>& advance) {
    const bool rebuilds = output_type(source, "reconstructed").has_value();
    STIPPLE_REQUIRE(rebuilds || (options.classes.empty() && !options.unseen),
                    "--classes and --unseen are for autoencoders: classifiers have their classes");
    const auto add = rebuilds ? add_likeness : add_confidence;
    return {add(std::move(source), set, options, weights, advance)};
}

}  // namespace stipple::tasks
