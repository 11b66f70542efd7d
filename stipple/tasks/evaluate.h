#pragma once
// How well a classifier does on clouds whose classes are known.

#include "stipple/tasks/classify.h"

namespace stipple::tasks {

struct Evaluation {
    int64_t clouds = 0, right = 0;
    double accuracy = 0;             // right / clouds
    double mean_class_accuracy = 0;  // mean of the accuracies of the classes that occur: rare ones count alike
    int64_t classes = 0;
    std::vector<int64_t> confusion;  // [classes, classes]: clouds of a class (row) taken for one (column)
};

/// From likeliest classes and truths, one each. Throws Error{bad_argument} for no clouds, counts that differ and
/// classes out of range.
Evaluation evaluate(std::span<const int64_t> found, std::span<const int64_t> labels, int64_t classes);

/// Classifies all entries and compares with their labels. Throws Error{bad_file} for one that cannot be read or has no
/// label.
Evaluation evaluate(Classifier& classifier, const std::vector<data::CloudEntry>& entries, const CloudOptions& options,
                    const data::ReadClouds& how, io::Warnings& warnings, const std::function<void()>& advance = {});

}  // namespace stipple::tasks
