#include "stipple/tasks/normals.h"

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/geometry/normals.h"
#include "stipple/tasks/label_scan.h"

namespace stipple::tasks {
namespace {

constexpr const char* kOfNeighbours = "Nearest points that tell a normal, itself among them, 3 to 128";
constexpr const char* kWithin = "Of those only the ones within it; 0: all";

std::array<double, 3> from_origin(const PointCloud& cloud, double x, double y, double z) {
    return {x - cloud.origin[0], y - cloud.origin[1], z - cloud.origin[2]};
}

Orientation orient(const PointCloud& cloud, const NormalsOptions& options, View<float, 2> normals) {
    if (const auto& place = options.viewpoint) {
        geometry::orient_towards(cloud.positions.view(), normals,
                                 from_origin(cloud, (*place)[0], (*place)[1], (*place)[2]));
        return Orientation::viewpoint;
    }
    if (options.orient == Orientation::none) return Orientation::none;
    if (options.orient == Orientation::mst) {
        geometry::orient_consistently(cloud.positions.view(), normals, options.k);
        return Orientation::mst;
    }
    STIPPLE_REQUIRE(options.orient == Orientation::automatic || cloud.facts.viewpoint,
                    "--orient viewpoint needs --viewpoint X Y Z: the file does not say where its sensor stood");
    return orient_normals(cloud, normals, options.k);
}

}  // namespace

const Fields& normals_fields() {
    using Options = NormalsOptions;
    static const Fields fields = {
        field<&Options::k>("k", kOfNeighbours).between(3, 128),
        field<&Options::radius>("radius", kWithin).unit("unit of the cloud").from(0),
        field<&Options::orient>("orient", "auto: viewpoint where it is known, else mst: outwards, neighbours agree")
            .words(kOrientationWords),
        field<&Options::viewpoint>("viewpoint",
                                   "Where the scanner stood, in the file's coordinates; PCD and KITTI know it")
            .shown("X Y Z"),
        field<&Options::curvature>("curvature", "Also an attribute curvature, 0 flat to 1/3")};
    return fields;
}

const Fields& normals_found_fields() {
    using Found = NormalsFound;
    static const Fields fields = {
        field<&Found::points>("points", "Points of the cloud"),
        field<&Found::without_normal>("without_normal", "Points whose neighbours span no plane"),
        field<&Found::k>("k", kOfNeighbours), field<&Found::radius>("radius", kWithin).unit("unit of the cloud"),
        field<&Found::orient>("orient", "How normals were turned").words(kOrientationWords)};
    return fields;
}

void check_options(const NormalsOptions& options) {
    check_fields(normals_fields(), &options);
    // What is searched is float32.
    STIPPLE_REQUIRE(options.radius == 0 || static_cast<float>(options.radius) > 0,
                    "--radius must be above 0, or 0 for none, got {}", options.radius);
    STIPPLE_REQUIRE(
        !options.viewpoint || options.orient == Orientation::viewpoint || options.orient == Orientation::automatic,
        "--viewpoint is for --orient viewpoint");
}

NormalsFound add_normals(PointCloud& cloud, const NormalsOptions& options) {
    check_options(options);
    const int64_t n = cloud.size();
    const float radius = options.radius > 0 ? static_cast<float>(options.radius) : HUGE_VALF;
    const Array<float, 2> points = cloud.positions.to(options.device);
    Array<float, 2> found({n, 3}, options.device);
    Array<float, 1> flatness({n}, options.device);
    geometry::estimate_normals(points.view(), found.view(), flatness.view(), options.k, radius);
    Array<float, 2> normals = found.to({});
    const Array<float, 1> curvatures = flatness.to({});
    NormalsFound report{.points = n, .k = options.k, .orient = orient(cloud, options, normals.view())};
    if (options.radius > 0) report.radius = options.radius;
    for (const float curvature : curvatures.span()) report.without_normal += std::isnan(curvature);
    put_attribute(cloud.attributes, attribute_of<float>("normal", normals.span(), 3));
    if (options.curvature) put_attribute(cloud.attributes, attribute_of<float>("curvature", curvatures.span()));
    return report;
}

Orientation orient_normals(const PointCloud& cloud, View<float, 2> normals, int k) {
    if (const auto& sensor = cloud.facts.viewpoint) {
        geometry::orient_towards(cloud.positions.view(), normals,
                                 from_origin(cloud, (*sensor)[0], (*sensor)[1], (*sensor)[2]));
        return Orientation::viewpoint;
    }
    geometry::orient_consistently(cloud.positions.view(), normals, k);
    return Orientation::mst;
}

}  // namespace stipple::tasks
