#pragma once
// The confidence of a classifier from the clouds that it was trained on.

#include "stipple/data/data_set.h"
#include "stipple/tasks/classify.h"

namespace stipple::tasks {

struct ConfidenceSizes {
    std::vector<int64_t> points = {1024, 256, 64, 32};
    uint64_t seed = 0;
};

/// What the classifier says of a training set whose clouds have labels, and what these measure: for each size that
/// clouds have, so many of their points, the first ones and random ones. `advance`, where given, is called after each
/// cloud, twice for each size. Throws Error{bad_argument} for a set without labels or with others than the network has
/// classes, and for a size below 1.
std::vector<ConfidenceClouds> confidence_clouds(Classifier& classifier, const data::DataSet& set,
                                                const ConfidenceSizes& sizes,
                                                const std::function<void()>& advance = {});

/// fit_confidence() of those. On two cores some minutes for ModelNet40 and a PointNet.
Confidence fit_confidence(Classifier& classifier, const data::DataSet& set, const ConfidenceSizes& sizes,
                          const ConfidenceOptions& options, const std::function<void()>& advance = {});

}  // namespace stipple::tasks
