#include "stipple/metrics/point_to_face.h"

#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/sample_surface.h"

namespace stipple::metrics {
namespace {

using Vector = std::array<double, 3>;

Vector minus(const Vector& a, const Vector& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

double dot(const Vector& a, const Vector& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// a + t (b - a)
Vector along(const Vector& a, const Vector& b, double t) {
    return {a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), a[2] + t * (b[2] - a[2])};
}

Vector nearest_on_segment(const Vector& p, const Vector& a, const Vector& b) {
    const Vector ab = minus(b, a);
    const double length_sq = dot(ab, ab);
    if (length_sq == 0) return a;
    return along(a, b, std::clamp(dot(minus(p, a), ab) / length_sq, 0.0, 1.0));
}

Vector vertex_of(const Mesh& mesh, int64_t face, int corner) {
    const float* p = mesh.vertices.positions.data() + 3 * int64_t{mesh.triangles.data()[3 * face + corner]};
    return {p[0], p[1], p[2]};
}

double area_of(const Mesh& mesh) {
    double sum = 0;
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        const Vector a = vertex_of(mesh, f, 0), u = minus(vertex_of(mesh, f, 1), a),
                     v = minus(vertex_of(mesh, f, 2), a);
        const double x = u[1] * v[2] - u[2] * v[1], y = u[2] * v[0] - u[0] * v[2], z = u[0] * v[1] - u[1] * v[0];
        sum += std::sqrt(x * x + y * y + z * z) / 2;
    }
    return sum;
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
    : mesh_(&mesh), index_(index_of(mesh, device)), area_(area_of(mesh)) {}

Vector nearest_on_triangle(const Vector& p, const Vector& a, const Vector& b, const Vector& c) {
    const Vector ab = minus(b, a), ac = minus(c, a), ap = minus(p, a);
    const double aa = dot(ab, ab), cc = dot(ac, ac), bc = dot(ab, ac);
    const double determinant = aa * cc - bc * bc;
    // The projection into the plane, where the triangle spans one; else, and where it falls outside, an edge.
    if (determinant > 1e-24 * aa * cc) {
        const double u = (cc * dot(ab, ap) - bc * dot(ac, ap)) / determinant,
                     v = (aa * dot(ac, ap) - bc * dot(ab, ap)) / determinant;
        if (u >= 0 && v >= 0 && u + v <= 1)
            return {a[0] + u * ab[0] + v * ac[0], a[1] + u * ab[1] + v * ac[1], a[2] + u * ab[2] + v * ac[2]};
    }
    Vector best = nearest_on_segment(p, a, b);
    for (const Vector& other : {nearest_on_segment(p, b, c), nearest_on_segment(p, c, a)}) {
        const Vector old = minus(p, best), fresh = minus(p, other);
        if (dot(fresh, fresh) < dot(old, old)) best = other;
    }
    return best;
}

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
            const Vector p = {exact[0], exact[1], exact[2]};
            Vector nearest;
            nearest.fill(std::numeric_limits<double>::quiet_NaN());
            double distance = std::numeric_limits<double>::infinity();
            if (face >= 0) {
                nearest = nearest_on_triangle(p, vertex_of(mesh.mesh(), face, 0), vertex_of(mesh.mesh(), face, 1),
                                              vertex_of(mesh.mesh(), face, 2));
                const Vector off = minus(p, nearest);
                distance = std::sqrt(dot(off, off));
            }
            result.distance.data()[i] = distance;
            std::copy(nearest.begin(), nearest.end(), result.nearest.data() + 3 * i);
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
