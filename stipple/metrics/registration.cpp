#include "stipple/metrics/registration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace stipple::metrics {
namespace {

double at(const Motion& m, int row, int column) {
    return m[4 * row + column];
}

/// Entry of A^T B of the two rotations.
double between(const Motion& a, const Motion& b, int row, int column) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) sum += at(a, k, row) * at(b, k, column);
    return sum;
}

void require_motions(const char* who, const Motion& estimate, const Motion& truth) {
    require_motion(who, estimate);
    require_motion(who, truth);
}

}  // namespace

void require_motion(const char* who, const Motion& motion) {
    for (const double value : motion) STIPPLE_REQUIRE(std::isfinite(value), "{}: a motion holds {}", who, value);
    double off = 0;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            double product = 0;
            for (int k = 0; k < 3; ++k) product += at(motion, i, k) * at(motion, j, k);
            off = std::max(off, std::abs(product - (i == j)));
        }
    STIPPLE_REQUIRE(off <= 1e-4, "{}: no rotation: R R^T differs from the identity by {:.3g}", who, off);
    const double determinant =
        at(motion, 0, 0) * (at(motion, 1, 1) * at(motion, 2, 2) - at(motion, 1, 2) * at(motion, 2, 1)) -
        at(motion, 0, 1) * (at(motion, 1, 0) * at(motion, 2, 2) - at(motion, 1, 2) * at(motion, 2, 0)) +
        at(motion, 0, 2) * (at(motion, 1, 0) * at(motion, 2, 1) - at(motion, 1, 1) * at(motion, 2, 0));
    STIPPLE_REQUIRE(determinant > 0, "{}: no rotation but a reflection: the determinant is {:.3g}", who, determinant);
    const bool last = motion[12] == 0 && motion[13] == 0 && motion[14] == 0 && motion[15] == 1;
    STIPPLE_REQUIRE(last, "{}: the last row is {} {} {} {}, not 0 0 0 1", who, motion[12], motion[13], motion[14],
                    motion[15]);
}

double rotation_error(const Motion& estimate, const Motion& truth) {
    require_motions("rotation_error", estimate, truth);
    const auto r = [&](int i, int j) { return between(estimate, truth, i, j); };
    // 2 sin and 2 cos of the angle: the arc tangent of the two is precise where acos of the trace alone is not.
    const double x = r(2, 1) - r(1, 2), y = r(0, 2) - r(2, 0), z = r(1, 0) - r(0, 1);
    return std::atan2(std::sqrt(x * x + y * y + z * z), r(0, 0) + r(1, 1) + r(2, 2) - 1) * 57.29577951308232;
}

double rotation_error_doubled(const Motion& estimate, const Motion& truth) {
    return 2 * rotation_error(estimate, truth);
}

double translation_error(const Motion& estimate, const Motion& truth) {
    require_motions("translation_error", estimate, truth);
    return std::hypot(estimate[3] - truth[3], estimate[7] - truth[7], estimate[11] - truth[11]);
}

double point_rmse(View<const float, 2> points, const Motion& estimate, const Motion& truth) {
    require_motions("point_rmse", estimate, truth);
    STIPPLE_REQUIRE((points.size(1) == 3 || points.size(0) == 0) && points.device() == Device{},
                    "point_rmse: points must be [n, 3] on the CPU, got {} on {}", shape_text(points.shape().data(), 2),
                    points.device());
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < points.size(0); ++i) {
        double square = 0;
        for (int row = 0; row < 3; ++row) {
            double off = at(estimate, row, 3) - at(truth, row, 3);
            for (int axis = 0; axis < 3; ++axis)
                off += (at(estimate, row, axis) - at(truth, row, axis)) * points(i, axis);
            square += off * off;
        }
        if (!std::isfinite(square)) continue;
        sum += square;
        ++finite;
    }
    return std::sqrt(sum / static_cast<double>(finite));  // 0 / 0: NaN
}

double precision_auc(std::span<const double> errors, double most, double step) {
    STIPPLE_REQUIRE(!errors.empty(), "precision_auc: no errors");
    STIPPLE_REQUIRE(most > 0 && step > 0 && std::isfinite(most) && std::isfinite(step),
                    "precision_auc: thresholds to {} by {}", most, step);
    std::vector<double> sorted;
    for (const double error : errors)
        if (std::isfinite(error)) sorted.push_back(error);
    std::sort(sorted.begin(), sorted.end());
    const auto share = [&](double threshold) {
        const auto below = std::upper_bound(sorted.begin(), sorted.end(), threshold) - sorted.begin();
        return static_cast<double>(below) / static_cast<double>(errors.size());
    };
    const auto steps = static_cast<int64_t>(std::ceil(most / step - 1e-9));
    STIPPLE_REQUIRE(steps <= 10'000'000, "precision_auc: {} thresholds", steps);
    double area = 0;
    for (int64_t i = 0; i < steps; ++i) {
        const double from = static_cast<double>(i) * step, to = std::min(most, static_cast<double>(i + 1) * step);
        area += (share(from) + share(to)) / 2 * (to - from);
    }
    return area / most;
}

double success_rate(std::span<const double> rotations, std::span<const double> translations, double most_rotation,
                    double most_translation) {
    STIPPLE_REQUIRE(rotations.size() == translations.size(), "success_rate: {} rotations, {} translations",
                    rotations.size(), translations.size());
    STIPPLE_REQUIRE(!rotations.empty(), "success_rate: no pairs");
    int64_t within = 0;
    for (size_t i = 0; i < rotations.size(); ++i)
        within += rotations[i] <= most_rotation && translations[i] <= most_translation;
    return static_cast<double>(within) / static_cast<double>(rotations.size());
}

}  // namespace stipple::metrics
