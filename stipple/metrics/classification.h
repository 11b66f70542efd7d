#pragma once

#include <span>
#include <string>
#include <vector>

#include "stipple/core/array.h"

namespace stipple::metrics {

struct Confusion {
    std::vector<std::string> classes;  // names, as many as rows and columns
    Array<int64_t, 2> counts;          // [truth, prediction]

    int64_t total() const;
};

/// Labels in [0, classes). Throws Error{bad_argument} for different lengths and labels out of range (with the place).
Confusion confusion(std::span<const int32_t> predictions, std::span<const int32_t> truth,
                    std::vector<std::string> classes);

/// OA, "instance accuracy": share of right answers. NaN without any.
double overall_accuracy(const Confusion& confusion);

/// Share of right answers in each class; NaN for a class that the truth has not.
std::vector<double> class_accuracies(const Confusion& confusion);

/// mAcc: mean of the classes' accuracies, over the classes that the truth has.
double mean_accuracy(const Confusion& confusion);

/// Rows are the truth. For people: names, counts, accuracy of each class.
std::string to_text(const Confusion& confusion);

}  // namespace stipple::metrics
