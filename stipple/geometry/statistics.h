#pragma once
// Numbers about the values of points: percentiles, histograms, density.

#include <array>
#include <span>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/core/view.h"

namespace stipple::geometry {

/// Of the finite values; all 0 where there is none.
struct ValueStatistics {
    static constexpr std::array<int, 7> kPercents = {1, 5, 25, 50, 75, 95, 99};

    int64_t count = 0, non_finite = 0;
    double min = 0, max = 0, mean = 0, deviation = 0;  // deviation: of the population, with n
    std::array<double, 7> percentiles = {};            // the smallest value that so many percent are not above
};

/// Sums in the order of the values, percentiles exact. O(n log n) at worst.
ValueStatistics statistics_of(std::span<const double> values);

struct Histogram {
    double low = 0, high = 1;
    std::vector<int64_t> counts;  // bins of equal width; the last holds `high`
};
const Fields& histogram_fields();

/// Of the finite values, from the smallest to the largest, or from `low` to `high` where low < high (others do not
/// count). Values that are all the same are in the first of their bins. Throws Error{bad_argument} for bins < 1.
Histogram histogram_of(std::span<const double> values, int bins, double low = 0, double high = 0);

/// How dense points [n, 3] lie.
struct PointDensity {
    int64_t points = 0;       // finite ones
    double spacing = 0;       // median distance of a point to the nearest other
    double mean_spacing = 0;  // the same, mean
    double per_area = 0;      // points in a unit square of the ground plan, where there are any
    double per_volume = 0;    // points in a unit cube, where there are any
};
/// All but the points.
const Fields& point_density_fields();

/// Distances are those of at most 50,000 points, evenly taken from the order. Areas and volumes are counted in squares
/// and cubes of four times the spacing, so that they follow outlines and holes; 0 where points have no spacing (fewer
/// than 2, or most of them duplicates). CPU. O(n log n).
PointDensity point_density(View<const float, 2> points);

}  // namespace stipple::geometry
