#include "stipple/tasks/confidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/error.h"

namespace stipple::tasks {
namespace {

constexpr int kM = kShapeMeasures;
using Matrix = std::array<std::array<double, kM>, kM>;

// A class with n clouds has n / (n + kPrior) of its own covariance, the rest is that of all classes.
constexpr double kPrior = 100;
constexpr double kRidge = 0.02;  // of the variances of all classes, added to each

std::vector<double> softmax(std::span<const float> logits, double temperature) {
    std::vector<double> p(logits.size());
    if (p.empty()) return p;
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp((logits[i] - largest) / temperature);
    for (double& x : p) x /= sum;
    return p;
}

double mean_log_loss(std::span<const float> logits, std::span<const int32_t> labels, size_t classes,
                     double temperature) {
    double sum = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
        const std::span<const float> row = logits.subspan(i * classes, classes);
        const double largest = *std::max_element(row.begin(), row.end());
        double exponentials = 0;
        for (const float x : row) exponentials += std::exp((x - largest) / temperature);
        sum += std::log(exponentials) - (row[static_cast<size_t>(labels[i])] - largest) / temperature;
    }
    return sum / static_cast<double>(labels.size());
}

void add_outer(Matrix& to, const ShapeMeasures& d) {
    for (int i = 0; i < kM; ++i)
        for (int j = 0; j < kM; ++j) to[i][j] += d[i] * d[j];
}

ShapeMeasures difference(const ShapeMeasures& a, const ShapeMeasures& b) {
    ShapeMeasures d;
    for (int i = 0; i < kM; ++i) d[i] = a[i] - b[i];
    return d;
}

/// The inverse of the Cholesky factor of a covariance, so that |factor d|^2 = d' covariance^-1 d.
std::array<double, Confidence::kFactor> whitening(const Matrix& covariance) {
    Matrix lower = {};
    for (int i = 0; i < kM; ++i)
        for (int j = 0; j <= i; ++j) {
            double sum = covariance[i][j];
            for (int k = 0; k < j; ++k) sum -= lower[i][k] * lower[j][k];
            lower[i][j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / lower[j][j];
        }
    Matrix inverse = {};
    for (int column = 0; column < kM; ++column)
        for (int i = column; i < kM; ++i) {
            double sum = i == column ? 1 : 0;
            for (int k = column; k < i; ++k) sum -= lower[i][k] * inverse[k][column];
            inverse[i][column] = sum / lower[i][i];
        }
    std::array<double, Confidence::kFactor> factor;
    for (int i = 0, at = 0; i < kM; ++i)
        for (int j = 0; j <= i; ++j) factor[at++] = inverse[i][j];
    return factor;
}

double squared_distance(const Confidence::Class& to, const ShapeMeasures& measures) {
    const ShapeMeasures d = difference(measures, to.mean);
    double sum = 0;
    for (int i = 0, at = 0; i < kM; ++i) {
        double component = 0;
        for (int j = 0; j <= i; ++j) component += to.factor[at++] * d[j];
        sum += component * component;
    }
    return sum;
}

/// Root of the mean square over the classes.
double distance_of(const Confidence& confidence, const std::vector<double>& probabilities,
                   const ShapeMeasures& measures, const ShapeMeasures& shift) {
    const ShapeMeasures at = difference(measures, shift);
    double sum = 0;
    for (size_t c = 0; c < probabilities.size(); ++c)
        sum += probabilities[c] * squared_distance(confidence.classes[c], at);
    return std::sqrt(sum);
}

double log_sum_exp(std::span<const float> logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float x : logits) sum += std::exp(x - largest);
    return largest + std::log(sum);
}

/// Shift and limit of clouds of so many points.
Confidence::Size size_of(const Confidence& confidence, int64_t points) {
    const auto above = std::lower_bound(confidence.sizes.begin(), confidence.sizes.end(), points,
                                        [](const Confidence::Size& size, int64_t n) { return size.points < n; });
    if (above == confidence.sizes.end()) return confidence.sizes.back();
    if (above == confidence.sizes.begin()) return *above;
    const Confidence::Size &low = above[-1], &high = *above;
    const double t = (std::log(static_cast<double>(points)) - std::log(static_cast<double>(low.points))) /
                     (std::log(static_cast<double>(high.points)) - std::log(static_cast<double>(low.points)));
    Confidence::Size size{.points = points, .shift = {}, .limit = low.limit + t * (high.limit - low.limit)};
    for (int i = 0; i < kM; ++i) size.shift[i] = low.shift[i] + t * (high.shift[i] - low.shift[i]);
    return size;
}

void check_set(const ConfidenceClouds& set, int64_t classes) {
    const size_t n = set.labels.size();
    STIPPLE_REQUIRE(
        set.points >= 1 && set.measures.size() == n && set.logits.size() == n * static_cast<size_t>(classes),
        "confidence: {} labels, {} measures and {} logits of {} classes do not fit", n, set.measures.size(),
        set.logits.size(), classes);
    for (const int32_t label : set.labels)
        STIPPLE_REQUIRE(label >= 0 && label < classes, "confidence: label {} of {} classes", label, classes);
    for (const float x : set.logits) STIPPLE_REQUIRE(std::isfinite(x), "confidence: a logit is not finite");
    for (const ShapeMeasures& measures : set.measures)
        for (const double x : measures) STIPPLE_REQUIRE(std::isfinite(x), "confidence: a measure is not finite");
}

/// Means and covariances of the classes, from the sets of the largest size.
std::vector<Confidence::Class> describe_classes(std::span<const ConfidenceClouds> sets, int64_t largest,
                                                int64_t classes) {
    std::vector<Confidence::Class> described(static_cast<size_t>(classes));
    std::vector<double> counts(described.size(), 0);
    const auto for_each = [&](auto&& visit) {
        for (const ConfidenceClouds& set : sets)
            if (set.points == largest)
                for (size_t i = 0; i < set.labels.size(); ++i)
                    visit(static_cast<size_t>(set.labels[i]), set.measures[i]);
    };
    for_each([&](size_t label, const ShapeMeasures& measures) {
        ++counts[label];
        for (int i = 0; i < kM; ++i) described[label].mean[i] += measures[i];
    });
    double all = 0;
    for (size_t c = 0; c < described.size(); ++c) {
        STIPPLE_REQUIRE(counts[c] > 0, "confidence: class {} has no clouds of {} points", c, largest);
        for (double& x : described[c].mean) x /= counts[c];
        all += counts[c];
    }
    std::vector<Matrix> scatter(described.size(), Matrix{});
    Matrix common = {};
    for_each([&](size_t label, const ShapeMeasures& measures) {
        add_outer(scatter[label], difference(measures, described[label].mean));
    });
    for (const Matrix& one : scatter)
        for (int i = 0; i < kM; ++i)
            for (int j = 0; j < kM; ++j) common[i][j] += one[i][j] / all;
    for (size_t c = 0; c < described.size(); ++c) {
        Matrix covariance;
        for (int i = 0; i < kM; ++i) {
            for (int j = 0; j < kM; ++j)
                covariance[i][j] = (scatter[c][i][j] + kPrior * common[i][j]) / (counts[c] + kPrior);
            covariance[i][i] += kRidge * common[i][i] + 1e-6;
        }
        described[c].factor = whitening(covariance);
    }
    return described;
}

ShapeMeasures mean_measures(std::span<const ConfidenceClouds> sets, int64_t points) {
    ShapeMeasures mean = {};
    double n = 0;
    for (const ConfidenceClouds& set : sets) {
        if (set.points != points) continue;
        for (const ShapeMeasures& measures : set.measures)
            for (int i = 0; i < kM; ++i) mean[i] += measures[i];
        n += static_cast<double>(set.measures.size());
    }
    for (double& x : mean) x /= n;
    return mean;
}

}  // namespace

double fit_temperature(std::span<const float> logits, std::span<const int32_t> labels, int64_t classes) {
    STIPPLE_REQUIRE(!labels.empty() && classes > 0 && logits.size() == labels.size() * static_cast<size_t>(classes),
                    "fit_temperature: {} logits and {} labels of {} classes", logits.size(), labels.size(), classes);
    const auto loss = [&](double log_temperature) {
        return mean_log_loss(logits, labels, static_cast<size_t>(classes), std::exp(log_temperature));
    };
    const double ratio = (std::sqrt(5.0) - 1) / 2;
    double low = std::log(0.05), high = std::log(20.0);
    double a = high - ratio * (high - low), b = low + ratio * (high - low), at_a = loss(a), at_b = loss(b);
    while (high - low > 1e-3) {  // the loss is convex in 1 / temperature, so it has one minimum
        if (at_a < at_b) {
            high = b, b = a, at_b = at_a;
            at_a = loss(a = high - ratio * (high - low));
        } else {
            low = a, a = b, at_a = at_b;
            at_b = loss(b = low + ratio * (high - low));
        }
    }
    return std::exp((low + high) / 2);
}

Confidence fit_confidence(std::span<const ConfidenceClouds> sets, int64_t classes, const ConfidenceOptions& options) {
    STIPPLE_REQUIRE(classes >= 1 && !sets.empty(), "confidence: no clouds");
    STIPPLE_REQUIRE(options.accepted > 0 && options.accepted < 1 && options.temperature >= 0,
                    "confidence: accepted {} must be between 0 and 1, temperature {} not negative", options.accepted,
                    options.temperature);
    std::vector<int64_t> sizes;
    std::vector<float> logits;
    std::vector<int32_t> labels;
    for (const ConfidenceClouds& set : sets) {
        check_set(set, classes);
        if (!set.labels.empty()) sizes.push_back(set.points);
        logits.insert(logits.end(), set.logits.begin(), set.logits.end());
        labels.insert(labels.end(), set.labels.begin(), set.labels.end());
    }
    STIPPLE_REQUIRE(!labels.empty(), "confidence: no clouds");
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());

    Confidence confidence;
    confidence.temperature = options.temperature > 0 ? options.temperature : fit_temperature(logits, labels, classes);
    confidence.classes = describe_classes(sets, sizes.back(), classes);
    const ShapeMeasures reference = mean_measures(sets, sizes.back());
    for (const int64_t points : sizes) {
        Confidence::Size size{.points = points, .shift = difference(mean_measures(sets, points), reference)};
        std::vector<double> distances;
        for (const ConfidenceClouds& set : sets) {
            if (set.points != points) continue;
            for (size_t i = 0; i < set.labels.size(); ++i) {
                const auto row =
                    std::span(set.logits).subspan(i * static_cast<size_t>(classes), static_cast<size_t>(classes));
                distances.push_back(
                    distance_of(confidence, softmax(row, confidence.temperature), set.measures[i], size.shift));
            }
        }
        const auto at = static_cast<std::ptrdiff_t>(options.accepted * static_cast<double>(distances.size() - 1));
        std::nth_element(distances.begin(), distances.begin() + at, distances.end());
        size.limit = std::max(distances[static_cast<size_t>(at)], 1e-3);
        confidence.sizes.push_back(size);
    }
    return confidence;
}

Assessment assess(const Confidence& confidence, std::span<const float> logits, const ShapeMeasures& measures,
                  int64_t points) {
    STIPPLE_REQUIRE(logits.size() == confidence.classes.size(), "confidence is about {} classes, not {}",
                    confidence.classes.size(), logits.size());
    Assessment answer;
    answer.probabilities = softmax(logits, confidence.temperature);
    const Confidence::Size size = size_of(confidence, points);
    const double distance = distance_of(confidence, answer.probabilities, measures, size.shift) / size.limit;
    answer.distance = distance;
    answer.evidence = log_sum_exp(logits) - 2 * distance * distance;
    return answer;
}

Assessment assess(std::span<const float> logits) {
    Assessment answer;
    answer.probabilities = softmax(logits, 1);
    if (!logits.empty()) answer.evidence = log_sum_exp(logits);
    return answer;
}

}  // namespace stipple::tasks
