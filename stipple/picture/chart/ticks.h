#pragma once
// Round numbers along an axis.

#include <optional>
#include <vector>

#include "stipple/picture/chart.h"
#include "stipple/picture/legend.h"

namespace stipple::picture::chart {

/// Values beyond this count as not finite, so that no difference overflows.
inline constexpr double kLargest = 1e300;

/// Multiples of the smallest step 1, 2 or 5 times a power of ten, at least `min_step`, of which at most `most` are
/// within `range`. Texts are all different and share their decimals, and a power of ten where they need one:
/// a number, the times sign, 10^6, where what follows ^ is raised. `range` must be as linear_range or widened gives it.
std::vector<Tick> linear_ticks(AxisRange range, int most, double min_step = 0);

/// 1, 2, 5 times the powers of ten where at most `most` of these are within `range`, else every nth power of ten;
/// within less than a decade linear_ticks.
std::vector<Tick> log_ticks(AxisRange range, int most);

/// The same range, or when its ends are equal (to nine digits) one around it.
AxisRange widened(AxisRange range);

/// The smallest range with `data` whose ends are ticks, of which it has at most `most` (3 or more). Zero becomes an end
/// when it is near.
AxisRange linear_range(AxisRange data, int most);

/// From 1, 2 or 5 times a power of ten to another.
AxisRange log_range(AxisRange data);

}  // namespace stipple::picture::chart
