#include "stipple/tasks/evaluate.h"

namespace stipple::tasks {

Evaluation evaluate(std::span<const int64_t> found, std::span<const int64_t> labels, int64_t classes) {
    STIPPLE_REQUIRE(!labels.empty() && found.size() == labels.size(), "{} answers for {} labels", found.size(),
                    labels.size());
    Evaluation result;
    result.classes = classes;
    result.clouds = static_cast<int64_t>(labels.size());
    result.confusion.assign(static_cast<size_t>(classes * classes), 0);
    for (size_t i = 0; i < labels.size(); ++i) {
        for (const int64_t at : {found[i], labels[i]})
            STIPPLE_REQUIRE(at >= 0 && at < classes, "class {} of cloud {}: the network has {}", at, i, classes);
        ++result.confusion[static_cast<size_t>(labels[i] * classes + found[i])];
    }
    int64_t occurring = 0;
    for (int64_t label = 0; label < classes; ++label) {
        int64_t all = 0;
        for (int64_t i = 0; i < classes; ++i) all += result.confusion[static_cast<size_t>(label * classes + i)];
        if (all == 0) continue;
        const int64_t right = result.confusion[static_cast<size_t>(label * classes + label)];
        result.right += right;
        result.mean_class_accuracy += static_cast<double>(right) / static_cast<double>(all);
        ++occurring;
    }
    result.mean_class_accuracy /= static_cast<double>(occurring);
    result.accuracy = static_cast<double>(result.right) / static_cast<double>(result.clouds);
    return result;
}

Evaluation evaluate(Classifier& classifier, const std::vector<data::CloudEntry>& entries, const CloudOptions& options,
                    const data::ReadClouds& how, io::Warnings& warnings, const std::function<void()>& advance) {
    std::vector<int64_t> found, labels;
    for (const data::CloudEntry& entry : entries) {
        if (entry.error) throw *entry.error;
        if (!entry.label()) throw Error(ErrorCode::bad_file, Place{entry.name()}, "has no label");
        labels.push_back(*entry.label());
    }
    for (const Classified& answer : classify(classifier, entries, options, how, warnings, advance)) {
        if (answer.error) throw *answer.error;
        found.push_back(answer.guesses[0].index);
    }
    return evaluate(found, labels, classifier.classes());
}

}  // namespace stipple::tasks
