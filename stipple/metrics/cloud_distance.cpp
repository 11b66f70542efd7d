#include "stipple/metrics/cloud_distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stipple::metrics {
namespace {

/// max that does not lose a NaN.
double larger(double a, double b) {
    return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}

double share_within(const Nearest& nearest, double squared) {
    int64_t within = 0;
    for (const double value : nearest.squared.span()) within += value <= squared;
    return static_cast<double>(within) / static_cast<double>(nearest.squared.size(0));
}

/// Sum of the products of unit normals over the pairs that have two.
struct Agreement {
    double sum = 0;
    int64_t pairs = 0;

    double mean() const { return pairs == 0 ? NAN : sum / static_cast<double>(pairs); }
};

Agreement agreement(const Nearest& nearest, View<const float, 2> own, View<const float, 2> other, bool oriented) {
    Agreement result;
    for (int64_t i = 0; i < own.size(0); ++i) {
        const int32_t j = nearest.index.data()[i];
        if (j < 0) continue;
        double product = 0, squares = 0, other_squares = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double a = own(i, axis), b = other(j, axis);
            product += a * b;
            squares += a * a;
            other_squares += b * b;
        }
        const double cosine = product / (std::sqrt(squares) * std::sqrt(other_squares));
        if (!std::isfinite(cosine)) continue;
        result.sum += std::clamp(oriented ? cosine : std::abs(cosine), -1.0, 1.0);
        ++result.pairs;
    }
    return result;
}

}  // namespace

CloudDistances cloud_distances(const NearestBoth& nearest) {
    return {distances_of_squared(nearest.of_a.squared.span()), distances_of_squared(nearest.of_b.squared.span())};
}

double chamfer(const CloudDistances& distances, ChamferKind kind) {
    const Distances &a = distances.to_truth, &b = distances.from_truth;
    switch (kind) {
        case ChamferKind::squared_sum: return a.mean_squared + b.mean_squared;
        case ChamferKind::squared_half: return (a.mean_squared + b.mean_squared) / 2;
        case ChamferKind::l1_sum: return a.mean + b.mean;
        case ChamferKind::l1_half: return (a.mean + b.mean) / 2;
        case ChamferKind::l1_max: return larger(a.mean, b.mean);
    }
    return NAN;
}

double hausdorff(const CloudDistances& distances, HausdorffKind kind) {
    const double a = distances.to_truth.max, b = distances.from_truth.max;
    switch (kind) {
        case HausdorffKind::symmetric: return larger(a, b);
        case HausdorffKind::to_truth: return a;
        case HausdorffKind::from_truth: return b;
        case HausdorffKind::squared_sum: return a * a + b * b;
        case HausdorffKind::squared_half: return (a * a + b * b) / 2;
    }
    return NAN;
}

std::string_view metric_of(ChamferKind kind) {
    constexpr std::string_view kNames[] = {"chamfer_squared_sum", "chamfer_squared_half", "chamfer_l1_sum",
                                           "chamfer_l1_half", "chamfer_l1_max"};
    return kNames[static_cast<int>(kind)];
}

std::string_view metric_of(HausdorffKind kind) {
    constexpr std::string_view kNames[] = {"hausdorff", "hausdorff_to_truth", "hausdorff_from_truth",
                                           "hausdorff_squared_sum", "hausdorff_squared_half"};
    return kNames[static_cast<int>(kind)];
}

FScore f_score(const NearestBoth& nearest, double radius) {
    STIPPLE_REQUIRE(radius >= 0, "f_score: the radius must be from 0, got {}", radius);
    FScore score;
    score.precision = share_within(nearest.of_a, radius * radius);
    score.recall = share_within(nearest.of_b, radius * radius);
    const double sum = score.precision + score.recall;
    score.f = sum == 0 ? 0 : 2 * score.precision * score.recall / sum;
    return score;
}

NormalConsistency normal_consistency(const NearestBoth& nearest, View<const float, 2> normals,
                                     View<const float, 2> truth_normals, bool oriented) {
    const auto require = [](const char* name, const View<const float, 2>& view, int64_t rows) {
        STIPPLE_REQUIRE(view.size(0) == rows && (view.size(1) == 3 || rows == 0) && view.device() == Device{},
                        "normal_consistency: {} must be [{}, 3] on the CPU, got {} on {}", name, rows,
                        shape_text(view.shape().data(), 2), view.device());
    };
    require("normals", normals, nearest.of_a.index.size(0));
    require("truth_normals", truth_normals, nearest.of_b.index.size(0));
    const Agreement forward = agreement(nearest.of_a, normals, truth_normals, oriented);
    const Agreement backward = agreement(nearest.of_b, truth_normals, normals, oriented);
    NormalConsistency result;
    result.to_truth = forward.mean();
    result.from_truth = backward.mean();
    result.mean = (result.to_truth + result.from_truth) / 2;
    result.used = forward.pairs + backward.pairs;
    return result;
}

}  // namespace stipple::metrics
