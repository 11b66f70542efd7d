#include "stipple/tasks/label_scan.h"

#include <algorithm>
#include <chrono>

#include "stipple/core/error.h"
#include "stipple/geometry/clusters.h"

namespace stipple::tasks {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

Attribute class_labels(const PointCloud& cloud, const std::vector<uint8_t>& is_ground) {
    const Attribute* old = find(cloud.attributes, "label");
    const bool keeps = old && old->components() == 1 && is_integer(old->dtype());
    Attribute labels = keeps ? old->clone() : Attribute("label", DType::u8, cloud.size(), 1);
    const int64_t width = size_of(labels.dtype());
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const bool was_ground = keeps && old->value(i) == kGroundClass;
        if (keeps && is_ground[i] == was_ground) continue;
        // The lowest byte of a small number, whatever the type: files and memory are little-endian here.
        std::byte* at = labels.data() + i * width;
        std::fill_n(at, width, std::byte{0});
        *at = static_cast<std::byte>(is_ground[i] ? kGroundClass : kUnclassifiedClass);
    }
    return labels;
}

std::optional<GroundAgreement> agreement(const PointCloud& cloud, const std::vector<uint8_t>& is_ground) {
    const Attribute* label = find(cloud.attributes, "label");
    if (!label || label->components() != 1) return std::nullopt;
    GroundAgreement found;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const bool was_ground = label->value(i) == kGroundClass;
        found.ground += was_ground;
        found.only_before += was_ground && !is_ground[i];
        found.only_now += !was_ground && is_ground[i];
    }
    if (found.ground == 0) return std::nullopt;
    const int64_t same = cloud.size() - found.only_before - found.only_now;
    found.agree = static_cast<double>(same) / static_cast<double>(cloud.size());
    return found;
}

const Fields& labelled_plane_fields() {
    static const Fields fields = {field<&LabelledPlane::plane>("plane", "The label of its points"),
                                  object_field<&LabelledPlane::segment>("", geometry::plane_segment_fields)};
    return fields;
}

constexpr const char* kCloudUnit = "unit of the cloud";

}  // namespace

// ---- Ground

const Fields& label_ground_fields() {
    static const Fields fields = {object_field<&LabelGroundOptions::ground>("", geometry::ground_fields),
                                  field<&LabelGroundOptions::only>("only", "Write the ground alone")};
    return fields;
}

const Fields& ground_agreement_fields() {
    using Found = GroundAgreement;
    static const Fields fields = {
        field<&Found::ground>("ground", "Points that the file's labels call ground"),
        field<&Found::only_before>("only_before", "Those of them that are not ground now"),
        field<&Found::only_now>("only_now", "Points that are ground now and were not"),
        field<&Found::agree>("agree", "Share of all points that both say the same of").between(0, 1)};
    return fields;
}

const Fields& ground_labels_fields() {
    static const Fields fields = {
        field<&GroundLabels::points>("points", "Points of the cloud"),
        field<&GroundLabels::ground>("ground", "Points that are ground"),
        field<&GroundLabels::cells>("cells", "Columns and rows of the ground's surface"),
        object_field<&GroundLabels::labels_before>("labels_before", ground_agreement_fields,
                                                   "Against the file's own labels, where these know ground")};
    return fields;
}

GroundLabels label_ground(PointCloud& cloud, const LabelGroundOptions& options) {
    geometry::Ground found = geometry::find_ground(cloud, options.ground);
    GroundLabels labels{.points = cloud.size(), .cells = {found.columns, found.rows}};
    labels.ground = std::count(found.is_ground.begin(), found.is_ground.end(), uint8_t{1});
    labels.labels_before = agreement(cloud, found.is_ground);
    put_attribute(cloud.attributes, class_labels(cloud, found.is_ground));
    put_attribute(cloud.attributes, attribute_of<float>("height_above_ground", found.height.span()));
    labels.is_ground = std::move(found.is_ground);
    return labels;
}

// ---- Planes

const Fields& label_plane_fields() {
    static const Fields fields = {
        object_field<&LabelPlaneOptions::planes>("", geometry::plane_fields),
        field<&LabelPlaneOptions::attribute>("attribute", "Name of the attribute: from 0, -1 for none")};
    return fields;
}

const Fields& plane_labels_fields() {
    static const Fields fields = {
        field<&PlaneLabels::points>("points", "Points of the cloud"),
        field<&PlaneLabels::distance>("distance", "Of points from their plane, at most").unit(kCloudUnit),
        field<&PlaneLabels::min_points>("min_points", "Points that a plane had to have"),
        field<&PlaneLabels::seconds>("seconds", "Time of the search").unit("s"),
        objects_field<&PlaneLabels::planes>("planes", labelled_plane_fields, "In the order in which they were found")};
    return fields;
}

void check_options(const LabelPlaneOptions& options) {
    STIPPLE_REQUIRE(options.planes.distance != 0, "how far may points be from their plane? Give --distance D");
    check_fields(label_plane_fields(), &options);
    STIPPLE_REQUIRE(options.planes.min_points == 0 || options.planes.min_points >= 3,
                    "--min-points must be from 3, got {}", options.planes.min_points);
    STIPPLE_REQUIRE(!options.attribute.empty(), "--attribute must have a name");
}

PlaneLabels label_planes(PointCloud& cloud, const LabelPlaneOptions& options) {
    check_options(options);
    const Clock::time_point begin = Clock::now();
    const geometry::PlaneSegments found = geometry::find_planes(cloud, options.planes);
    PlaneLabels labels{.points = cloud.size(),
                       .distance = options.planes.distance,
                       .min_points = found.min_points,
                       .seconds = seconds_since(begin)};
    for (const geometry::PlaneSegment& segment : found.planes)
        labels.planes.push_back({static_cast<int64_t>(labels.planes.size()), segment});
    put_attribute(cloud.attributes, attribute_of<int32_t>(options.attribute, found.labels.span()));
    return labels;
}

// ---- Clusters

const Fields& label_cluster_fields() {
    using Options = LabelClusterOptions;
    static const Fields fields = {
        field<&Options::radius>("radius", "How far neighbours are, at most")
            .unit(kCloudUnit)
            .shown("R")
            .above(0)
            .no_default(),
        field<&Options::min_points>("min_points", "Within it, itself among them, around points of a core").from(1),
        field<&Options::attribute>("attribute", "Name of the attribute: from 0, -1 for noise")};
    return fields;
}

const Fields& cluster_labels_fields() {
    static const Fields fields = {
        field<&ClusterLabels::points>("points", "Points of the cloud"),
        field<&ClusterLabels::radius>("radius", "How far neighbours are, at most").unit(kCloudUnit),
        field<&ClusterLabels::min_points>("min_points", "Neighbours of a core point, itself among them"),
        field<&ClusterLabels::seconds>("seconds", "Time of the search").unit("s"),
        field<&ClusterLabels::clusters>("clusters", "How many there are"),
        field<&ClusterLabels::noise>("noise", "Points of no cluster"),
        field<&ClusterLabels::sizes>("sizes", "Points of each cluster")};
    return fields;
}

void check_options(const LabelClusterOptions& options) {
    STIPPLE_REQUIRE(options.radius != 0, "how far are neighbours at most? Give --radius R");
    check_fields(label_cluster_fields(), &options);
    STIPPLE_REQUIRE(!options.attribute.empty(), "--attribute must have a name");
}

ClusterLabels label_clusters(PointCloud& cloud, const LabelClusterOptions& options) {
    check_options(options);
    const Clock::time_point begin = Clock::now();
    const geometry::DensityClusters found =
        geometry::density_clusters(cloud.positions.view(), options.radius, options.min_points);
    ClusterLabels labels{.points = cloud.size(),
                         .radius = options.radius,
                         .min_points = options.min_points,
                         .seconds = seconds_since(begin),
                         .clusters = found.count};
    labels.sizes.resize(static_cast<size_t>(found.count));
    for (const int32_t label : found.labels.span())
        ++(label < 0 ? labels.noise : labels.sizes[static_cast<size_t>(label)]);
    put_attribute(cloud.attributes, attribute_of<int32_t>(options.attribute, found.labels.span()));
    return labels;
}

// ---- Attributes

void put_attribute(Attributes& attributes, Attribute attribute) {
    if (Attribute* old = find(attributes, attribute.name()))
        *old = std::move(attribute);
    else
        attributes.push_back(std::move(attribute));
}

}  // namespace stipple::tasks
