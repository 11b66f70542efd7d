#include "stipple/metrics/density.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/ops/knn.h"

namespace stipple::metrics {
namespace {

struct Spread {
    double mean = NAN, deviation = NAN;
};

/// Of the finite values, deviation from the mean in a second pass.
Spread spread_of(std::span<const double> values) {
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (const double value : values)
        if (std::isfinite(value)) sum += value, ++count;
    if (count == 0) return {};
    const double mean = sum / static_cast<double>(count);
    for (const double value : values)
        if (std::isfinite(value)) squares += (value - mean) * (value - mean);
    return {mean, std::sqrt(squares / static_cast<double>(count))};
}

}  // namespace

Density density_of(const Points& points, int k, Device device) {
    STIPPLE_REQUIRE(k >= 1 && k <= 127, "density_of: k must be 1 to 127, got {}", k);
    const int64_t n = points.size();
    Density result;
    result.points = points.finite;
    result.per_point = Array<double, 1>({n});
    std::fill(result.per_point.span().begin(), result.per_point.span().end(), double{NAN});
    result.spacing_mean = result.spacing_deviation = result.spacing_min = result.spacing_max = NAN;
    result.spacing_variation = result.density_mean = result.density_variation = NAN;
    if (points.finite < 2) return result;

    // A point is among its own neighbours, though not the first of them where points coincide: distances are what
    // counts, and then it makes no difference which of the coincident ones is left out.
    const auto columns = static_cast<int64_t>(std::min<int64_t>(k + 1, points.finite));
    const Array<float, 2> there = points.rounded.to(device);
    Array<int32_t, 2> found({n, columns}, device);
    ops::knn(ops::PointIndex(there.view()), there.view(), found.view(), {});
    const Array<int32_t, 2> neighbours = found.to(Device{});

    Array<double, 1> spacing({n});
    parallel_for(n, 4096, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            spacing.data()[i] = NAN;
            if (neighbours.data()[i * columns + columns - 1] < 0) continue;  // not finite
            const auto distance = [&](int64_t column) {
                const double *a = points.exact.data() + 3 * i,
                             *b = points.exact.data() + 3 * int64_t{neighbours.data()[i * columns + column]};
                return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                                 (a[2] - b[2]) * (a[2] - b[2]));
            };
            const double last = distance(columns - 1);
            spacing.data()[i] = distance(1);
            result.per_point.data()[i] = static_cast<double>(columns - 1) / (M_PI * last * last);
        }
    });
    const Spread spacings = spread_of(spacing.span()), densities = spread_of(result.per_point.span());
    result.spacing_mean = spacings.mean;
    result.spacing_deviation = spacings.deviation;
    result.spacing_variation = spacings.deviation / spacings.mean;
    result.spacing_min = std::numeric_limits<double>::infinity();
    result.spacing_max = 0;
    for (const double value : spacing.span()) {
        if (std::isnan(value)) continue;
        result.spacing_min = std::min(result.spacing_min, value);
        result.spacing_max = std::max(result.spacing_max, value);
    }
    result.density_mean = densities.mean;
    result.density_variation = densities.deviation / densities.mean;
    return result;
}

}  // namespace stipple::metrics
