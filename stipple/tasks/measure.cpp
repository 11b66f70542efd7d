#include "stipple/tasks/measure.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "stipple/core/error.h"
#include "stipple/geometry/signed_distance.h"
#include "stipple/metrics/normalise.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/label_scan.h"

namespace stipple::tasks {

// ---- Distances

namespace {

void measure_to_points(const PointCloud& reference, PointCloud& cloud, Device device) {
    // Both in the frame of the reference: origins differ from file to file. Distances in float64 from there.
    const metrics::Frame frame{reference.origin, 1};
    const metrics::Points from = metrics::in_frame(cloud, frame), to = metrics::in_frame(reference, frame);
    const Array<float, 2> queries = from.rounded.to(device), targets = to.rounded.to(device);
    Array<int32_t, 2> indices({cloud.size(), 1}, device);
    ops::knn(ops::PointIndex(targets.view()), queries.view(), indices.view(), {});
    const Array<int32_t, 2> nearest = indices.to({});
    Attribute distance("distance", DType::f32, cloud.size(), 1);
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const int64_t j = nearest.data()[i];
        double sum = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double d = from.exact.data()[3 * i + axis] - (j < 0 ? HUGE_VAL : to.exact.data()[3 * j + axis]);
            sum += d * d;
        }
        distance.as<float>().data()[i] = static_cast<float>(std::sqrt(sum));
    }
    put_attribute(cloud.attributes, std::move(distance));
    put_attribute(cloud.attributes, attribute_of<int32_t>("nearest", nearest.span()));
}

void measure_to_surface(const Mesh& mesh, PointCloud& cloud, bool is_signed, Device device) {
    // Both in the frame of the mesh: origins differ from file to file.
    const Array<float, 2> queries = metrics::in_frame(cloud, {mesh.vertices.origin, 1}).rounded.to(device);
    const Array<float, 2> vertices = mesh.vertices.positions.to(device);
    const Array<int32_t, 2> triangles = mesh.triangles.to(device);
    const geometry::MeshView view(vertices.view(), triangles.view());
    Array<float, 1> distances({cloud.size()}, device);
    Array<int32_t, 1> faces({cloud.size()}, device);
    geometry::ClosestPoints found;
    found.distances = distances.view();
    found.faces = faces.view();
    const geometry::MeshIndex index(view);
    if (is_signed)
        geometry::signed_distance(index, geometry::WindingIndex(view), queries.view(), found);
    else
        geometry::closest_point(index, queries.view(), found);
    std::erase_if(cloud.attributes,
                  [](const Attribute& old) { return old.name() == "distance" || old.name() == "face"; });
    cloud.attributes.push_back(attribute_of<float>("distance", distances.to({}).span()));
    cloud.attributes.push_back(attribute_of<int32_t>("face", faces.to({}).span()));
}

Distances summarise(const Attribute& distance, bool is_signed) {
    Distances found{.points = distance.rows(), .is_signed = is_signed};
    std::vector<double> sorted;
    double sum = 0, sum_absolute = 0, squares = 0;
    int64_t inside = 0;
    for (int64_t i = 0; i < distance.rows(); ++i) {
        const double d = distance.value(i);
        sorted.push_back(d);
        sum += d;
        sum_absolute += std::abs(d);
        inside += d < 0;
    }
    const auto n = static_cast<double>(sorted.size());
    const double mean = sum / n;
    for (const double d : sorted) squares += (d - mean) * (d - mean);
    std::sort(sorted.begin(), sorted.end());
    const auto quantile = [&](double share) {
        return sorted[static_cast<size_t>(std::max(0.0, std::ceil(share * n) - 1))];
    };
    if (is_signed) found.inside = inside;
    found.distance = {.mean = mean,
                      .mean_absolute = {},
                      .deviation = std::sqrt(squares / n),
                      .min = sorted.front(),
                      .median = quantile(0.5),
                      .most_of_90 = quantile(0.9),
                      .most_of_99 = quantile(0.99),
                      .max = sorted.back()};
    if (is_signed) found.distance.mean_absolute = sum_absolute / n;
    return found;
}

}  // namespace

const Fields& distance_fields() {
    using Options = DistanceOptions;
    static const Fields fields = {
        field<&Options::to>("to", "auto: the surface where the reference has faces, else its points")
            .words(kDistanceToWords),
        field<&Options::is_signed>("signed", "Negative inside, by the winding number: meshes may be open")};
    return fields;
}

const Fields& distance_summary_fields() {
    using Summary = DistanceSummary;
    static const Fields fields = {
        field<&Summary::mean>("mean", "Mean"),
        field<&Summary::mean_absolute>("mean of |d|", "Mean of the sizes of signed distances"),
        field<&Summary::deviation>("std", "Standard deviation"),
        field<&Summary::min>("min", "Smallest"),
        field<&Summary::median>("median", "Half of the points have at most this distance"),
        field<&Summary::most_of_90>("90 %", "90 of 100 points have at most this distance"),
        field<&Summary::most_of_99>("99 %", "99 of 100 points have at most this distance"),
        field<&Summary::max>("max", "Largest")};
    return fields;
}

const Fields& distances_fields() {
    static const Fields fields = {
        field<&Distances::is_signed>("signed", "Whether distances are negative inside"),
        field<&Distances::inside>("inside", "Points of negative distance, where distances are signed"),
        object_field<&Distances::distance>("distance", distance_summary_fields, "Of all points")};
    return fields;
}

Distances measure_distances(const Mesh& reference, PointCloud& cloud, const DistanceOptions& options) {
    const bool to_surface =
        options.to == DistanceTo::surface || (options.to == DistanceTo::automatic && reference.faces() > 0);
    STIPPLE_REQUIRE(!to_surface || reference.faces() > 0, "distances to a surface need faces");
    STIPPLE_REQUIRE(to_surface || !options.is_signed, "signed distances need a surface");
    if (to_surface)
        measure_to_surface(reference, cloud, options.is_signed, options.device);
    else
        measure_to_points(reference.vertices, cloud, options.device);
    return summarise(*find(cloud.attributes, "distance"), options.is_signed);
}

// ---- Statistics

namespace {

/// Calls body(name, values) for each number that points have: coordinates of the world, components of attributes.
void for_each_value(const PointCloud& cloud, const std::vector<std::string>& wanted,
                    const std::function<void(const std::string& name, const std::vector<double>& values)>& body) {
    std::vector<std::string> names = {"x", "y", "z"};
    for (const Attribute& attribute : cloud.attributes) names.push_back(attribute.name());
    for (const std::string& name : wanted)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw Error(ErrorCode::bad_argument, fmt::format("no attribute \"{}\"", name),
                        fmt::format("there are {}", fmt::join(names, ", ")));
    std::vector<double> values(static_cast<size_t>(cloud.size()));
    for (const std::string& name : wanted.empty() ? names : wanted) {
        const int axis = name.size() == 1 ? name[0] - 'x' : -1;
        const bool is_axis = axis >= 0 && axis < 3;
        const Attribute* attribute = is_axis ? nullptr : find(cloud.attributes, name);
        for (int64_t c = 0; c < (is_axis ? 1 : attribute->components()); ++c) {
            for (int64_t i = 0; i < cloud.size(); ++i)
                values[static_cast<size_t>(i)] = is_axis ? cloud.world(i, axis) : attribute->value(i, c);
            body(is_axis || attribute->components() == 1 ? name : fmt::format("{}[{}]", name, c), values);
        }
    }
}

ValueSummary summarise(const std::string& name, const std::vector<double>& values, int bins) {
    const geometry::ValueStatistics found = geometry::statistics_of(values);
    ValueSummary summary{.name = name, .count = found.count, .non_finite = found.non_finite};
    summary.histogram = geometry::histogram_of(values, bins);
    if (found.count == 0) return summary;
    summary.min = found.min;
    summary.max = found.max;
    summary.mean = found.mean;
    summary.deviation = found.deviation;
    const auto& p = found.percentiles;
    static_assert(geometry::ValueStatistics::kPercents == std::array<int, 7>{1, 5, 25, 50, 75, 95, 99});
    summary.percentiles = {p[0], p[1], p[2], p[3], p[4], p[5], p[6]};
    return summary;
}

const Fields& percentiles_fields() {
    static const Fields fields = {field<&Percentiles::p1>("1", "1 of 100 values are at most this"),
                                  field<&Percentiles::p5>("5", "5 of 100 values are at most this"),
                                  field<&Percentiles::p25>("25", "A quarter of the values are at most this"),
                                  field<&Percentiles::p50>("50", "Half of the values are at most this"),
                                  field<&Percentiles::p75>("75", "Three quarters of the values are at most this"),
                                  field<&Percentiles::p95>("95", "95 of 100 values are at most this"),
                                  field<&Percentiles::p99>("99", "99 of 100 values are at most this")};
    return fields;
}

}  // namespace

const Fields& stats_fields() {
    static const Fields fields = {
        field<&StatsOptions::of>("of", "Only of these: x, y, z and attributes").shown("A,B,..."),
        field<&StatsOptions::bins>("bins", "Of the histograms").between(1, 10000)};
    return fields;
}

const Fields& value_summary_fields() {
    using Summary = ValueSummary;
    static const Fields fields = {
        field<&Summary::name>("name", "The coordinate or the attribute, with its component"),
        field<&Summary::count>("count", "Finite values"),
        field<&Summary::non_finite>("non_finite", "Values that are not finite; they do not count"),
        field<&Summary::min>("min", "Smallest"),
        field<&Summary::max>("max", "Largest"),
        field<&Summary::mean>("mean", "Mean"),
        field<&Summary::deviation>("std", "Standard deviation"),
        object_field<&Summary::percentiles>("percentiles", percentiles_fields),
        object_field<&Summary::histogram>("histogram", geometry::histogram_fields)};
    return fields;
}

const Fields& cloud_stats_fields() {
    static const Fields fields = {
        field<&CloudStats::points>("points", "Points of the cloud"),
        object_field<&CloudStats::density>("density", geometry::point_density_fields, "How dense points lie"),
        objects_field<&CloudStats::values>("values", value_summary_fields)};
    return fields;
}

CloudStats describe_values(const PointCloud& cloud, const StatsOptions& options) {
    check_fields(stats_fields(), &options);
    CloudStats stats{.points = cloud.size(), .density = geometry::point_density(cloud.positions.view())};
    for_each_value(cloud, options.of, [&](const std::string& name, const std::vector<double>& values) {
        stats.values.push_back(summarise(name, values, options.bins));
    });
    return stats;
}

}  // namespace stipple::tasks
