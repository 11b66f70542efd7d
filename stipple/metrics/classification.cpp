#include "stipple/metrics/classification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace stipple::metrics {

int64_t Confusion::total() const {
    return std::accumulate(counts.span().begin(), counts.span().end(), int64_t{0});
}

Confusion confusion(std::span<const int32_t> predictions, std::span<const int32_t> truth,
                    std::vector<std::string> classes) {
    STIPPLE_REQUIRE(predictions.size() == truth.size(), "confusion: {} predictions for {} labels", predictions.size(),
                    truth.size());
    const auto n = static_cast<int64_t>(classes.size());
    Confusion result{std::move(classes), Array<int64_t, 2>({n, n})};
    std::fill(result.counts.span().begin(), result.counts.span().end(), 0);
    for (size_t i = 0; i < truth.size(); ++i) {
        STIPPLE_REQUIRE(truth[i] >= 0 && truth[i] < n, "confusion: label {} is {}, of {} classes", i, truth[i], n);
        STIPPLE_REQUIRE(predictions[i] >= 0 && predictions[i] < n, "confusion: prediction {} is {}, of {} classes", i,
                        predictions[i], n);
        ++result.counts.view()(truth[i], predictions[i]);
    }
    return result;
}

double overall_accuracy(const Confusion& confusion) {
    int64_t right = 0;
    for (int64_t i = 0; i < confusion.counts.size(0); ++i) right += confusion.counts.view()(i, i);
    const int64_t total = confusion.total();
    if (total == 0) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(right) / static_cast<double>(total);
}

std::vector<double> class_accuracies(const Confusion& confusion) {
    const int64_t n = confusion.counts.size(0);
    std::vector<double> accuracies(static_cast<size_t>(n), std::numeric_limits<double>::quiet_NaN());
    for (int64_t i = 0; i < n; ++i) {
        const auto row = confusion.counts.span().subspan(static_cast<size_t>(i * n), static_cast<size_t>(n));
        const int64_t all = std::accumulate(row.begin(), row.end(), int64_t{0});
        if (all > 0) accuracies[i] = static_cast<double>(row[i]) / static_cast<double>(all);
    }
    return accuracies;
}

double mean_accuracy(const Confusion& confusion) {
    double sum = 0;
    int64_t present = 0;
    for (const double accuracy : class_accuracies(confusion)) {
        if (std::isnan(accuracy)) continue;
        sum += accuracy;
        ++present;
    }
    return present == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(present);
}

std::string to_text(const Confusion& confusion) {
    const int64_t n = confusion.counts.size(0);
    size_t name_width = 5, width = 1;
    for (const std::string& name : confusion.classes) name_width = std::max(name_width, name.size());
    for (const int64_t count : confusion.counts.span()) width = std::max(width, std::to_string(count).size());
    width = std::max(width, std::to_string(n - 1).size());
    // Columns have the numbers of the rows: names would make them too wide.
    std::string text = fmt::format("{:>{}}  {:>4} ", "truth", name_width + 5, "acc");
    for (int64_t j = 0; j < n; ++j) text += fmt::format(" {:>{}}", j, width);
    text += '\n';
    const std::vector<double> accuracies = class_accuracies(confusion);
    for (int64_t i = 0; i < n; ++i) {
        text += fmt::format("{:>4} {:>{}}  {:>4} ", i, confusion.classes[i], name_width,
                            std::isnan(accuracies[i]) ? "-" : fmt::format("{:.0f}%", 100 * accuracies[i]));
        for (int64_t j = 0; j < n; ++j) text += fmt::format(" {:>{}}", confusion.counts.view()(i, j), width);
        text += '\n';
    }
    return text;
}

}  // namespace stipple::metrics
