#pragma once
// What a network's answers are worth, measured on training clouds and put into its weights: the confidence of a
// classifier, the likeness of an autoencoder.

#include "stipple/core/fields.h"
#include "stipple/data/data_set.h"
#include "stipple/network/weights.h"
#include "stipple/tasks/model_file.h"

namespace stipple::tasks {

struct MeasureConfidenceOptions {
    // Of autoencoders; classifiers have their classes.
    std::vector<std::string> classes = {};  // those it was trained on, by name; none: those that the weights name
    bool unseen = false;                    // it was not trained on these very clouds
    std::string device = "auto";
};
const Fields& measure_confidence_fields();

struct MeasuredConfidence {
    int64_t clouds = 0;  // that it was measured on
};
const Fields& measured_confidence_fields();

/// Sets the metadata of `weights`, of which `source` was made. `advance`, where given, is called as clouds are done, of
/// so many in all. Throws as fit_confidence(), items_of_classes() and fit_likeness(), and Error{bad_argument} for
/// options of autoencoders with a classifier.
MeasuredConfidence measure_confidence(ModelOrEngine source, const data::DataSet& set,
                                      const MeasureConfidenceOptions& options, network::Weights& weights,
                                      const std::function<void(int64_t total)>& advance = {});

}  // namespace stipple::tasks
