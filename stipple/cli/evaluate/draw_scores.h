#pragma once
// What the reports of both kinds of networks share: numbers as people read them, and charts of shares in percent.

#include <string>
#include <utility>
#include <vector>

#include "stipple/core/image.h"

namespace stipple::cli {

/// 0.89123 -> 89.12, for tables.
double percent(double share);

/// "1024", or "20 to 30" where clouds differ.
template <class Scores>
std::string points_text(const Scores& scores) {
    if (scores.fewest == scores.most) return std::to_string(scores.most);
    return std::to_string(scores.fewest) + " to " + std::to_string(scores.most);
}

/// Curves over the number of points, in its order; values in [0, 1].
Image draw_over_points(const std::string& title, const std::string& what, const std::vector<double>& points,
                       const std::vector<std::pair<std::string, std::vector<double>>>& curves);

/// A bar for each name; values in [0, 1].
Image draw_by_name(const std::string& title, const std::string& what, const std::vector<std::string>& names,
                   const std::vector<double>& values);

}  // namespace stipple::cli
