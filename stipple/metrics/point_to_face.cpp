#include "stipple/metrics/point_to_face.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/query/triangle.h"
#include "stipple/geometry/sample_surface.h"

namespace stipple::metrics {
namespace {

geometry::Triangle triangle_of(const Mesh& mesh, int64_t face) {
    const auto corner = [&](int k) {
        const float* p = mesh.vertices.positions.data() + 3 * int64_t{mesh.triangles.data()[3 * face + k]};
        return Vec3d{p[0], p[1], p[2]};
    };
    return {corner(0), corner(1), corner(2)};
}

geometry::MeshIndex index_of(const Mesh& mesh, Device device) {
    STIPPLE_REQUIRE(mesh.triangles.device() == Device{}, "IndexedMesh: the mesh is on {}", mesh.triangles.device());
    STIPPLE_REQUIRE(mesh.faces() > 0, "IndexedMesh: the mesh has no faces");
    geometry::require_mesh("IndexedMesh", mesh);
    if (device == Device{}) return geometry::MeshIndex(mesh);
    const Array<float, 2> positions = mesh.vertices.positions.to(device);
    const Array<int32_t, 2> triangles = mesh.triangles.to(device);
    return geometry::MeshIndex({positions.view(), triangles.view()});
}

}  // namespace

IndexedMesh::IndexedMesh(const Mesh& mesh, Device device)
    : mesh_(&mesh), index_(index_of(mesh, device)), area_(geometry::surface_area(mesh)) {}

FaceDistances point_to_face(const IndexedMesh& mesh, const Points& points) {
    const int64_t n = points.size();
    const Device device = mesh.index().device();
    const bool here = device == Device{};
    Array<int32_t, 1> found({n}, device);
    geometry::ClosestPoints wanted;
    wanted.faces = found.view();
    const Array<float, 2> there = here ? Array<float, 2>() : points.rounded.to(device);
    geometry::closest_point(mesh.index(), here ? points.rounded.view() : there.view(), wanted);

    FaceDistances result{Array<double, 1>({n}), here ? std::move(found) : found.to(Device{}), Array<double, 2>({n, 3})};
    parallel_for(n, 4096, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int32_t face = result.face.data()[i];
            const double* exact = points.exact.data() + 3 * i;
            double* nearest = result.nearest.data() + 3 * i;
            std::fill_n(nearest, 3, std::numeric_limits<double>::quiet_NaN());
            result.distance.data()[i] = std::numeric_limits<double>::infinity();
            if (face < 0) continue;
            const geometry::Triangle triangle = triangle_of(mesh.mesh(), face);
            const geometry::OnTriangle on = geometry::closest_on_triangle({exact[0], exact[1], exact[2]}, triangle);
            const Vec3d place =
                geometry::combine(triangle.a, on.v, triangle.b - triangle.a, on.w, triangle.c - triangle.a);
            nearest[0] = place.x, nearest[1] = place.y, nearest[2] = place.z;
            result.distance.data()[i] = std::sqrt(on.dist_sq);
        }
    });
    return result;
}

Distances face_to_point(const IndexedMesh& mesh, const Points& points, int64_t samples, uint64_t seed, Device device) {
    STIPPLE_REQUIRE(samples > 0, "face_to_point: {} samples", samples);
    PointCloud drawn;
    drawn.positions = geometry::sample_surface(mesh.mesh(), samples, seed).points;
    return distances_of_squared(nearest_of(in_frame(drawn, {}), points, device).squared.span());
}

}  // namespace stipple::metrics
