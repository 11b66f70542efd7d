#pragma once
// Numbers about clouds: how far points are from a cloud or a surface, and what values points have.

#include <optional>
#include <string>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"
#include "stipple/geometry/statistics.h"

namespace stipple::tasks {

// ---- Distances

enum class DistanceTo {
    automatic,  // the surface where the reference has faces, else its points
    points,
    surface,
};
inline constexpr const char* kDistanceToWords[] = {"auto", "points", "surface"};

struct DistanceOptions {
    DistanceTo to = DistanceTo::automatic;
    bool is_signed = false;  // negative inside; to a surface alone
    Device device = {};      // of the search
};
const Fields& distance_fields();

/// Of the distances of all points.
struct DistanceSummary {
    double mean = 0;
    std::optional<double> mean_absolute = {};  // of signed ones
    double deviation = 0, min = 0;
    double median = 0, most_of_90 = 0, most_of_99 = 0;  // the smallest value that so many percent are not above
    double max = 0;
};
const Fields& distance_summary_fields();

struct Distances {
    int64_t points = 0;  // that were measured
    bool is_signed = false;
    std::optional<int64_t> inside = {};  // points of negative distance, of signed ones
    DistanceSummary distance = {};
};
/// All but the points.
const Fields& distances_fields();

/// Gives each point of the cloud, all finite, the attributes `distance`, float32, and `nearest`, the point of the
/// reference that is nearest, or `face`, its nearest face. Origins may differ. Throws Error{bad_argument} for signed
/// distances to points, or to a surface that the reference has not. Both on the CPU.
Distances measure_distances(const Mesh& reference, PointCloud& cloud, const DistanceOptions& options);

// ---- Statistics

struct StatsOptions {
    std::vector<std::string> of = {};  // x, y, z and attributes; none: all
    int bins = 60;
};
const Fields& stats_fields();

/// Missing where there is no finite value.
struct Percentiles {
    std::optional<double> p1 = {}, p5 = {}, p25 = {}, p50 = {}, p75 = {}, p95 = {}, p99 = {};
};
/// Of a coordinate, or of a component of an attribute.
struct ValueSummary {
    std::string name = {};  // "z", "normal[2]"
    int64_t count = 0, non_finite = 0;
    std::optional<double> min = {}, max = {}, mean = {}, deviation = {};
    Percentiles percentiles = {};
    geometry::Histogram histogram = {};
};
const Fields& value_summary_fields();

struct CloudStats {
    int64_t points = 0;
    geometry::PointDensity density = {};
    std::vector<ValueSummary> values = {};
};
const Fields& cloud_stats_fields();

/// Throws Error{bad_argument} for options out of their ranges and for an attribute that is not there. CPU.
CloudStats describe_values(const PointCloud& cloud, const StatsOptions& options);

}  // namespace stipple::tasks
