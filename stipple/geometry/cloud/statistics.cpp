#include "stipple/geometry/statistics.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/array.h"
#include "stipple/geometry/cloud/point_cells.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/ops/knn.h"

namespace stipple::geometry {

ValueStatistics statistics_of(std::span<const double> values) {
    ValueStatistics result;
    std::vector<double> sorted;
    sorted.reserve(values.size());
    for (const double x : values)
        if (std::isfinite(x)) sorted.push_back(x);
    result.count = static_cast<int64_t>(sorted.size());
    result.non_finite = static_cast<int64_t>(values.size()) - result.count;
    if (sorted.empty()) return result;
    const auto n = static_cast<double>(sorted.size());
    double sum = 0, squares = 0;
    for (const double x : sorted) sum += x;
    result.mean = sum / n;
    for (const double x : sorted) squares += (x - result.mean) * (x - result.mean);
    result.deviation = std::sqrt(squares / n);
    std::sort(sorted.begin(), sorted.end());
    result.min = sorted.front();
    result.max = sorted.back();
    for (size_t i = 0; i < result.percentiles.size(); ++i) {
        // In whole numbers: a product of doubles would round some ranks up.
        const int64_t rank = (result.count * ValueStatistics::kPercents[i] + 99) / 100;
        result.percentiles[i] = sorted[static_cast<size_t>(std::max<int64_t>(rank, 1) - 1)];
    }
    return result;
}

const Fields& histogram_fields() {
    static const Fields fields = {
        field<&Histogram::low>("low", "The smallest value"), field<&Histogram::high>("high", "The largest value"),
        field<&Histogram::counts>("counts", "Values in each of the bins, which are equally wide")};
    return fields;
}

Histogram histogram_of(std::span<const double> values, int bins, double low, double high) {
    STIPPLE_REQUIRE(bins >= 1, "a histogram has at least 1 bin, got {}", bins);
    Histogram result;
    result.counts.assign(static_cast<size_t>(bins), 0);
    if (!(low < high)) {
        low = HUGE_VAL, high = -HUGE_VAL;
        for (const double x : values)
            if (std::isfinite(x)) low = std::min(low, x), high = std::max(high, x);
        if (!(low <= high)) low = 0, high = 1;
    }
    result.low = low, result.high = high;
    // Halved, so that the width of any two finite numbers is finite.
    const double width = high / 2 - low / 2;
    for (const double x : values) {
        if (!std::isfinite(x) || x < low || x > high) continue;
        const double share = width > 0 ? (x / 2 - low / 2) / width : 0;
        ++result.counts[std::min(static_cast<size_t>(bins) - 1, static_cast<size_t>(share * bins))];
    }
    return result;
}

const Fields& point_density_fields() {
    using Density = PointDensity;
    static const Fields fields = {
        field<&Density::spacing>("spacing", "Median distance of a point to the nearest other")
            .unit("unit of the cloud"),
        field<&Density::mean_spacing>("mean_spacing", "Mean of these distances").unit("unit of the cloud"),
        field<&Density::per_area>("per_area", "Points in a unit square of the ground plan, where there are any"),
        field<&Density::per_volume>("per_volume", "Points in a unit cube, where there are any")};
    return fields;
}

PointDensity point_density(View<const float, 2> points) {
    PointDensity result;
    const int64_t n = points.size(0);
    Array<float, 2> finite({n, 3});
    for (int64_t i = 0; i < n; ++i) {
        const float p[3] = {points(i, 0), points(i, 1), points(i, 2)};
        if (std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]))
            std::copy_n(p, 3, finite.data() + 3 * result.points++);
    }
    if (result.points < 2) return result;
    const View<const float, 2> all(finite.data(), {result.points, 3});
    // Among different places: a search for the nearest of many at one place looks at all of them.
    const UniquePoints unique = unique_points(all);
    std::vector<int32_t> shared(static_cast<size_t>(unique.kept.size(0)), 0);
    for (const int32_t place : unique.unique_of.span()) ++shared[static_cast<size_t>(place)];
    const int64_t places = unique.kept.size(0);
    Array<float, 2> distinct({places, 3});
    for (int64_t i = 0; i < places; ++i)
        std::copy_n(finite.data() + 3 * int64_t{unique.kept.data()[i]}, 3, distinct.data() + 3 * i);
    constexpr int64_t kQueries = 50000;
    const int64_t m = std::min(result.points, kQueries);
    std::vector<double> distances;
    Array<float, 2> queries({m, 3}), distances_sq({m, 2});
    Array<int32_t, 2> indices({m, 2});
    int64_t alone = 0;  // points that share their place with no other
    for (int64_t k = 0; k < m; ++k) {
        const int64_t i = result.points * k / m;
        if (shared[static_cast<size_t>(unique.unique_of.data()[i])] > 1)
            distances.push_back(0);
        else
            std::copy_n(finite.data() + 3 * i, 3, queries.data() + 3 * alone++);
    }
    if (alone > 0 && places > 1)
        ops::knn(ops::PointIndex(distinct.view()), queries.view().slice(0, alone), indices.view().slice(0, alone),
                 distances_sq.view().slice(0, alone));
    for (int64_t i = 0; i < alone && places > 1; ++i)
        distances.push_back(std::sqrt(double{distances_sq.data()[2 * i + 1]}));
    const ValueStatistics spacing = statistics_of(distances);
    result.spacing = spacing.percentiles[3];
    result.mean_spacing = spacing.mean;
    if (!(result.spacing > 0)) return result;
    const double edge = 4 * result.spacing;
    const auto cells_of = [&](View<const float, 2> of) {
        const PointCells cells = point_cells(of, edge / 1.001);  // which adds a thousandth
        return static_cast<double>(cells.cells());
    };
    result.per_volume = static_cast<double>(result.points) / (cells_of(all) * edge * edge * edge);
    for (int64_t i = 0; i < result.points; ++i) finite.data()[3 * i + 2] = 0;
    result.per_area = static_cast<double>(result.points) / (cells_of(all) * edge * edge);
    return result;
}

}  // namespace stipple::geometry
