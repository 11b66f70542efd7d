// stipple.geometry: normals of points and meshes, outliers, statistics, descriptors.

#include "stipple/geometry/normals.h"

#include <limits>

#include "python/bindings/geometry/common.h"
#include "stipple/geometry/clusters.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/geometry/fpfh.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/outliers.h"
#include "stipple/geometry/statistics.h"

namespace stipple::python {
namespace {

struct NormalsResult {
    static constexpr auto name = py::detail::const_name("Normals");
    static constexpr const char* fields[] = {"normals", "curvatures"};
};
struct StatisticalOutliers {
    static constexpr auto name = py::detail::const_name("StatisticalOutliers");
    static constexpr const char* fields[] = {"keep", "kept", "mean", "deviation", "threshold"};
};
struct RadiusOutliers {
    static constexpr auto name = py::detail::const_name("RadiusOutliers");
    static constexpr const char* fields[] = {"keep", "kept"};
};
struct ClustersResult {
    static constexpr auto name = py::detail::const_name("DensityClusters");
    static constexpr const char* fields[] = {"labels", "core", "count"};
};
struct UniqueResult {
    static constexpr auto name = py::detail::const_name("UniquePoints");
    static constexpr const char* fields[] = {"kept", "unique_of"};
};
struct StatisticsResult {
    static constexpr auto name = py::detail::const_name("ValueStatistics");
    static constexpr const char* fields[] = {"count", "non_finite", "min", "max", "mean", "deviation", "percentiles"};
};
struct HistogramResult {
    static constexpr auto name = py::detail::const_name("Histogram");
    static constexpr const char* fields[] = {"low", "high", "counts"};
};
struct DensityResult {
    static constexpr auto name = py::detail::const_name("PointDensity");
    static constexpr const char* fields[] = {"points", "spacing", "mean_spacing", "per_area", "per_volume"};
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Record<NormalsResult> estimate_normals(const ArrayLike& points_, int k, float radius) {
    Call call;
    const PointsArgument points(call, points_, "points");
    auto normals = call.make<float, 2>({points.size(), 3});
    auto curvatures = call.make<float, 1>({points.size()});
    call.run([&](Stream stream) {
        geometry::estimate_normals(points.view(), normals.view(), curvatures.view(), k, radius, stream);
    });
    return record<NormalsResult>(call.give(std::move(normals)), call.give(std::move(curvatures)));
}

void orient_towards(const ArrayLike& points_, const ArrayLike& normals_, const NumbersLike& viewpoint) {
    Call call;
    const PointsArgument points(call, points_, "points");
    const auto normals = call.writable<float, 2>(normals_, "normals");
    const auto from = numbers_of<3>(viewpoint, "viewpoint");
    call.run([&](Stream stream) { geometry::orient_towards(points.view(), normals, from, stream); });
}

void orient_consistently(const ArrayLike& points_, const ArrayLike& normals_, int k) {
    Call call;
    const PointsArgument points(call, points_, "points");
    const auto normals = call.writable<float, 2>(normals_, "normals");
    call.run([&](Stream) { geometry::orient_consistently(points.view(), normals, k); });
}

Record<StatisticalOutliers> statistical_outliers(const ArrayLike& points_, int k, double ratio) {
    Call call;
    const PointsArgument points(call, points_, "points");
    Mask keep(call, points.size());
    geometry::OutlierStatistics found;
    call.run(
        [&](Stream stream) { found = geometry::statistical_outliers(points.view(), keep.view(), k, ratio, stream); });
    return record<StatisticalOutliers>(keep.give(call), number(found.kept), number(found.mean), number(found.deviation),
                                       number(found.threshold));
}

Record<RadiusOutliers> radius_outliers(const ArrayLike& points_, float radius, int neighbours) {
    Call call;
    const PointsArgument points(call, points_, "points");
    Mask keep(call, points.size());
    int64_t kept = 0;
    call.run([&](Stream stream) {
        kept = geometry::radius_outliers(points.view(), keep.view(), radius, neighbours, stream);
    });
    return record<RadiusOutliers>(keep.give(call), number(kept));
}

Record<ClustersResult> density_clusters(const ArrayLike& points_, double radius, int64_t min_points) {
    Call call;
    const PointsArgument points(call, points_, "points");
    geometry::DensityClusters found;
    call.run([&](Stream) { found = geometry::density_clusters(points.view(), radius, min_points); });
    return record<ClustersResult>(call.give(std::move(found.labels)), numpy_of(std::move(found.core), DType::boolean),
                                  number(found.count));
}

Record<UniqueResult> unique_points(const ArrayLike& points_, float distance) {
    Call call;
    const PointsArgument points(call, points_, "points");
    geometry::UniquePoints found;
    call.run([&](Stream) { found = geometry::unique_points(points.view(), distance); });
    return record<UniqueResult>(call.give(std::move(found.kept)), call.give(std::move(found.unique_of)));
}

ArrayResult fpfh(const ArrayLike& points_, const ArrayLike& normals_, double radius) {
    Call call;
    const PointsArgument points(call, points_, "points");
    const auto normals = call.array<float, 2>(normals_, "normals");
    Array<float, 2> found;
    call.run([&](Stream) { found = geometry::fpfh(points.view(), normals, radius); });
    return call.give(std::move(found));
}

ArrayResult fpfh_reversed(const ArrayLike& descriptors_) {
    Call call;
    const auto descriptors = call.array<float, 2>(descriptors_, "descriptors");
    Array<float, 2> found;
    call.run([&](Stream) { found = geometry::fpfh_reversed(descriptors); });
    return call.give(std::move(found));
}

std::span<const double> values_of(Call& call, const ArrayLike& values_) {
    const auto values = call.array<double, 1>(values_, "values");
    STIPPLE_REQUIRE(values.device() == Device{}, "values: on {}; wanted are numbers on the CPU", values.device());
    return {values.data(), static_cast<size_t>(values.size(0))};
}

Record<StatisticsResult> statistics_of(const ArrayLike& values_) {
    Call call;
    const auto values = values_of(call, values_);
    geometry::ValueStatistics found;
    call.run([&](Stream) { found = geometry::statistics_of(values); });
    py::dict percentiles;
    for (size_t i = 0; i < found.percentiles.size(); ++i)
        percentiles[py::int_(geometry::ValueStatistics::kPercents[i])] = found.percentiles[i];
    return record<StatisticsResult>(number(found.count), number(found.non_finite), number(found.min), number(found.max),
                                    number(found.mean), number(found.deviation), percentiles);
}

Record<HistogramResult> histogram_of(const ArrayLike& values_, int bins, double low, double high) {
    Call call;
    const auto values = values_of(call, values_);
    geometry::Histogram found;
    call.run([&](Stream) { found = geometry::histogram_of(values, bins, low, high); });
    return record<HistogramResult>(number(found.low), number(found.high), numpy_of(std::move(found.counts)));
}

Record<DensityResult> point_density(const ArrayLike& points_) {
    Call call;
    const PointsArgument points(call, points_, "points");
    geometry::PointDensity found;
    call.run([&](Stream) { found = geometry::point_density(points.view()); });
    return record<DensityResult>(number(found.points), number(found.spacing), number(found.mean_spacing),
                                 number(found.per_area), number(found.per_volume));
}

ArrayResult face_normals(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    auto normals = call.make<float, 2>({mesh.view().faces(), 3});
    call.run([&](Stream) { geometry::face_normals(mesh.view(), normals.view()); });
    return call.give(std::move(normals));
}

ArrayResult vertex_normals(const SurfaceLike& mesh_, std::string_view weights_) {
    constexpr Word<geometry::NormalWeights> kWeights[] = {{"uniform", geometry::NormalWeights::uniform},
                                                          {"area", geometry::NormalWeights::area},
                                                          {"angle", geometry::NormalWeights::angle}};
    const auto weights = choice(weights_, "weights", kWeights);
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    auto normals = call.make<float, 2>({mesh.view().vertices.size(0), 3});
    call.run([&](Stream) { geometry::vertex_normals(mesh.view(), normals.view(), weights); });
    return call.give(std::move(normals));
}

ArrayResult face_areas(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    auto areas = call.make<float, 1>({mesh.view().faces()});
    call.run([&](Stream) { geometry::face_areas(mesh.view(), areas.view()); });
    return call.give(std::move(areas));
}

double surface_area(const SurfaceLike& mesh_) {
    Call call;
    const SurfaceArgument mesh(call, mesh_, "mesh");
    return without_gil([&] { return geometry::surface_area(mesh.view()); });
}

}  // namespace

void bind_normals(py::module_& g) {
    add_record<NormalsResult>(g);
    add_record<StatisticalOutliers>(g);
    add_record<RadiusOutliers>(g);
    add_record<ClustersResult>(g);
    add_record<UniqueResult>(g);
    add_record<StatisticsResult>(g);
    add_record<HistogramResult>(g);
    add_record<DensityResult>(g);
    g.def("estimate_normals", &estimate_normals, py::arg("points"), py::arg("k") = 16, py::arg("radius") = kInfinity,
          doc::geometry::estimate_normals);
    g.def("orient_towards", &orient_towards, py::arg("points"), py::arg("normals"), py::arg("viewpoint"),
          noted("normals are changed in place.", doc::geometry::orient_towards).c_str());
    g.def("orient_consistently", &orient_consistently, py::arg("points"), py::arg("normals"), py::arg("k") = 16,
          noted("normals are changed in place.", doc::geometry::orient_consistently).c_str());
    g.def("statistical_outliers", &statistical_outliers, py::arg("points"), py::arg("k") = 16, py::arg("ratio") = 2.0,
          doc::geometry::statistical_outliers);
    g.def("radius_outliers", &radius_outliers, py::arg("points"), py::arg("radius"), py::arg("neighbours") = 2,
          doc::geometry::radius_outliers);
    g.def("density_clusters", &density_clusters, py::arg("points"), py::arg("radius"), py::arg("min_points"),
          doc::geometry::density_clusters);
    g.def("unique_points", &unique_points, py::arg("points"), py::arg("distance") = 0.f, doc::geometry::unique_points);
    g.def("fpfh", &fpfh, py::arg("points"), py::arg("normals"), py::arg("radius"), doc::geometry::fpfh);
    g.def("fpfh_reversed", &fpfh_reversed, py::arg("descriptors"), doc::geometry::fpfh_reversed);
    g.def("statistics_of", &statistics_of, py::arg("values"), doc::geometry::statistics_of);
    g.def("histogram_of", &histogram_of, py::arg("values"), py::arg("bins"), py::arg("low") = 0.0,
          py::arg("high") = 0.0, doc::geometry::histogram_of);
    g.def("point_density", &point_density, py::arg("points"), doc::geometry::point_density);
    g.def("face_normals", &face_normals, py::arg("mesh"), doc::geometry::face_normals);
    g.def("vertex_normals", &vertex_normals, py::arg("mesh"), py::arg("weights") = "angle",
          doc::geometry::vertex_normals);
    g.def("face_areas", &face_areas, py::arg("mesh"), doc::geometry::face_areas);
    g.def("surface_area", &surface_area, py::arg("mesh"), doc::geometry::surface_area);
}

}  // namespace stipple::python
