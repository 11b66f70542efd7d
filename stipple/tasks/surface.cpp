#include "stipple/tasks/surface.h"

#include <cmath>

#include "stipple/core/number_text.h"
#include "stipple/geometry/normals.h"
#include "stipple/tasks/normals.h"

namespace stipple::tasks {
namespace {

Array<float, 2> given_normals(const Attribute& given) {
    if (given.components() != 3) throw Error(ErrorCode::bad_file, "its normals have not three components");
    Array<float, 2> normals({given.rows(), 3});
    for (int64_t i = 0; i < 3 * given.rows(); ++i) normals.data()[i] = static_cast<float>(given.value(i / 3, i % 3));
    return normals;
}

Array<float, 2> estimated_normals(const PointCloud& cloud, const SurfaceOptions& options, bool& faces_sensor) {
    const Array<float, 2> points = cloud.positions.to(options.device);
    Array<float, 2> estimated({cloud.size(), 3}, options.device);
    geometry::estimate_normals(points.view(), estimated.view(), {}, options.k);
    Array<float, 2> normals = estimated.to(Device{});
    faces_sensor = orient_normals(cloud, normals.view(), options.k) == Orientation::viewpoint;
    return normals;
}

/// How many points have no usable normal, which reconstruct_surface() leaves out.
int64_t count_unusable(const Array<float, 2>& normals) {
    int64_t without = 0;
    const int64_t n = normals.size(0);
    for (int64_t i = 0; i < n; ++i) {
        const float* v = normals.data() + 3 * i;
        const double length = std::hypot(v[0], v[1], v[2]);
        without += !(length > 0) || !std::isfinite(length);
    }
    constexpr int64_t kFewest = 4;
    if (without > 0 && n - without < kFewest)
        throw Error(ErrorCode::bad_file,
                    fmt::format("{} of {} points are finite with a normal, a surface needs at least {}",
                                grouped(n - without), grouped(n), kFewest));
    return without;
}

}  // namespace

const Fields& surface_options_fields() {
    static const Fields fields = {
        object_field<&SurfaceOptions::reconstruction>("", geometry::reconstruct_fields),
        field<&SurfaceOptions::k>("k", "Neighbours that tell a normal, where the cloud has none").between(3, 127)};
    return fields;
}

const Fields& surface_fields() {
    static const Fields fields = {
        field<&Surface::normals>("normals", "Where the normals come from").words(kNormalsOfSurfaceWords),
        field<&Surface::without_normal>("without_normal", "Points without a usable normal, which are left out"),
        object_field<&Surface::facts>("surface", mesh_facts_fields, "The surface")};
    return fields;
}

Surface make_surface(const PointCloud& cloud, const SurfaceOptions& options) {
    check_fields(surface_options_fields(), &options);
    Surface made;
    const Attribute* given = find(cloud.attributes, "normal");
    if (!given) made.normals = NormalsOfSurface::estimated;
    const Array<float, 2> normals =
        given ? given_normals(*given) : estimated_normals(cloud, options, made.faces_sensor);
    made.without_normal = count_unusable(normals);
    made.mesh = geometry::reconstruct_surface(cloud.positions.view(), normals.view(), options.reconstruction);
    made.mesh.vertices.origin = cloud.origin;
    if (made.mesh.faces() == 0)
        throw Error(ErrorCode::bad_file,
                    fmt::format("{} points are too few or too far apart: they make no surface", grouped(cloud.size())));
    made.facts = mesh_facts(made.mesh);
    return made;
}

}  // namespace stipple::tasks
