#pragma once
// What a scan consists of, found by its geometry alone: ground, planes and clusters, as attributes of its points.

#include <optional>
#include <span>
#include <string>

#include "stipple/geometry/ground.h"
#include "stipple/geometry/planes.h"

namespace stipple::tasks {

/// Classes of LAS files [ASPRS].
inline constexpr int kGroundClass = 2, kUnclassifiedClass = 1;

// ---- Ground

struct LabelGroundOptions {
    geometry::GroundOptions ground;
    bool only = false;  // of the caller: only ground points go on, masked by GroundLabels::is_ground
};
const Fields& label_ground_fields();

/// How the ground that was found agrees with the ground of the labels that were there.
struct GroundAgreement {
    int64_t ground = 0;       // points that the labels called ground
    int64_t only_before = 0;  // that are not ground any more
    int64_t only_now = 0;     // that are ground now
    double agree = 0;         // share of all points that both say the same of
};
const Fields& ground_agreement_fields();

struct GroundLabels {
    int64_t points = 0, ground = 0;
    std::array<int64_t, 2> cells = {};                  // columns and rows of the ground's surface
    std::optional<GroundAgreement> labels_before = {};  // where labels called points ground
    std::vector<uint8_t> is_ground = {};                // [n]; no field
};
const Fields& ground_labels_fields();

/// Finds the ground (geometry/ground.h). Gives points the attribute `label`: ground is 2; what is not keeps its label,
/// but 2 becomes 1; without labels it is 1. Adds `height_above_ground`, float32. Throws as geometry::find_ground.
GroundLabels label_ground(PointCloud& cloud, const LabelGroundOptions& options);

// ---- Planes

struct LabelPlaneOptions {
    geometry::PlaneOptions planes = {.min_points = 0};
    std::string attribute = "plane";
};
const Fields& label_plane_fields();

struct LabelledPlane {
    int64_t plane = 0;  // its label
    geometry::PlaneSegment segment = {};
};
struct PlaneLabels {
    int64_t points = 0;
    double distance = 0;
    int64_t min_points = 0;  // that a plane had to have
    double seconds = 0;      // that the search took
    std::vector<LabelledPlane> planes = {};
};
const Fields& plane_labels_fields();

/// Throws Error{bad_argument} for options without a distance or an attribute's name and out of their ranges.
void check_options(const LabelPlaneOptions& options);
/// Finds planes (geometry/planes.h) and gives each point the number of its plane, int32, -1 for none. Throws as
/// check_options and geometry::find_planes.
PlaneLabels label_planes(PointCloud& cloud, const LabelPlaneOptions& options);

// ---- Clusters

struct LabelClusterOptions {
    double radius = 0;        // how far neighbours are, at most
    int64_t min_points = 10;  // neighbours of a core point, itself among them
    std::string attribute = "cluster";
};
const Fields& label_cluster_fields();

struct ClusterLabels {
    int64_t points = 0;
    double radius = 0;
    int64_t min_points = 0;
    double seconds = 0;  // that the search took
    int64_t clusters = 0;
    int64_t noise = 0;                // points of no cluster
    std::vector<int64_t> sizes = {};  // points of each cluster
};
const Fields& cluster_labels_fields();

/// Throws Error{bad_argument} for options without a radius or an attribute's name and out of their ranges.
void check_options(const LabelClusterOptions& options);
/// Finds clusters (geometry/clusters.h) and gives each point the number of its cluster, int32, -1 for noise. Throws as
/// check_options and geometry::density_clusters.
ClusterLabels label_clusters(PointCloud& cloud, const LabelClusterOptions& options);

// ---- Attributes

/// Puts the attribute in the place of the one of its name, or at the end.
void put_attribute(Attributes& attributes, Attribute attribute);

/// An attribute of as many rows as fit, with a copy of the values.
template <class T>
Attribute attribute_of(const std::string& name, std::span<const T> values, int64_t components = 1) {
    Attribute attribute(name, dtype_of<T>, static_cast<int64_t>(values.size()) / components, components);
    std::copy(values.begin(), values.end(), attribute.as<T>().data());
    return attribute;
}

}  // namespace stipple::tasks
