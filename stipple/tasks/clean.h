#pragma once
// Clouds without outliers, duplicates and points that have no place.

#include <optional>
#include <string>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"

namespace stipple::tasks {

enum class CleanMethod {
    nonfinite,    // points with a coordinate that is not finite
    duplicates,   // points at the place of an earlier one, or within a distance of it (geometry/dedupe.h)
    statistical,  // points that lie farther from their neighbours than is usual (geometry/outliers.h)
    radius,       // points that have few others near (geometry/outliers.h)
};
inline constexpr const char* kCleanMethodWords[] = {"nonfinite", "duplicates", "statistical", "radius"};

struct CleanOptions {
    /// In this order, each once. Outliers are looked for among finite points: where one of these methods comes before
    /// nonfinite or without it, nonfinite is done first.
    std::vector<CleanMethod> method = {CleanMethod::nonfinite, CleanMethod::statistical};
    int k = 16;                         // statistical: nearest points, the point itself among them
    double ratio = 2;                   // statistical: standard deviations above the mean
    std::optional<double> radius = {};  // radius: needed
    int neighbours = 2;                 // radius
    double distance = 0;                // duplicates
    Device device = {};                 // of the search for neighbours
};
const Fields& clean_fields();

/// What a method did, and the numbers that it went by; missing where the method has no such number.
struct CleanStep {
    CleanMethod method = CleanMethod::nonfinite;
    std::optional<double> distance = {}, ratio = {}, threshold = {}, radius = {};
    std::optional<int> k = {}, neighbours = {};
    int64_t removed = 0, left = 0;  // points
};
const Fields& clean_step_fields();

struct Cleaned {
    int64_t points = 0;                 // of the cloud
    std::vector<CleanStep> steps = {};  // in the order in which they were done
    int64_t removed = 0;                // points
    // Indices, ascending; no fields.
    std::vector<int32_t> kept_points = {}, removed_points = {};
};
const Fields& cleaned_fields();

/// Throws Error{bad_argument} for options out of their ranges, for a method that is there twice, for an option that
/// differs from its default and whose method is not there, and for the method radius without a radius.
void check_options(const CleanOptions& options);

/// Which points stay. Throws as check_options, and Error{bad_file} when no point stays.
Cleaned clean(const PointCloud& cloud, const CleanOptions& options);

/// "nonfinite 3, statistical 12": how many points each step removed.
std::string removed_text(const std::vector<CleanStep>& steps);

/// The points at these indices, with their attributes.
PointCloud points_at(const PointCloud& cloud, const std::vector<int32_t>& indices);

}  // namespace stipple::tasks
