#include "stipple/geometry/glyphs.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/primitives.h"
#include "stipple/ops/common/require.h"

namespace stipple::geometry {
namespace {

bool is_finite(const Vec3d& p) {
    return std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z);
}

void require_points(const char* who, const View<const float, 2>& points, const View<const float, 1>& radii,
                    int64_t faces_each) {
    ops::require_clouds(who, "points", points);
    const int64_t n = points.size(0);
    STIPPLE_REQUIRE(points.device() == Device{} && radii.device() == Device{}, "{}: works on the CPU", who);
    STIPPLE_REQUIRE(radii.size(0) == n, "{}: {} radii for {} points", who, radii.size(0), n);
    STIPPLE_REQUIRE(n <= INT32_MAX / (faces_each + 2), "{}: {} points of {} faces", who, n, faces_each);
    for (int64_t i = 0; i < n; ++i) {
        STIPPLE_REQUIRE(is_finite({points(i, 0), points(i, 1), points(i, 2)}), "{}: point {} is not finite", who, i);
        STIPPLE_REQUIRE(radii(i) > 0 && std::isfinite(radii(i)), "{}: radius {} of point {}", who, radii(i), i);
    }
}

/// n copies of a mesh, each vertex placed by place(point, vertex of the mesh).
template <class Place>
Mesh copies_of(const Mesh& glyph, int64_t n, const Place& place) {
    Mesh mesh;
    const int64_t vertices = glyph.vertices.size(), corners = glyph.triangles.elements();
    mesh.vertices = PointCloud(n * vertices);
    mesh.triangles = Array<int32_t, 2>({n * glyph.faces(), 3});
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t v = 0; v < vertices; ++v)
            store(place(i, to_vec3(glyph.vertices.positions.data() + 3 * v)),
                  mesh.vertices.positions.data() + 3 * (i * vertices + v));
        for (int64_t k = 0; k < corners; ++k)
            mesh.triangles.data()[i * corners + k] = static_cast<int32_t>(i * vertices) + glyph.triangles.data()[k];
    }
    return mesh;
}

/// The disc of radius 1 in the plane z = 0, facing up.
Mesh disc(int64_t segments) {
    Mesh mesh;
    mesh.vertices = PointCloud(segments + 1);
    mesh.triangles = Array<int32_t, 2>({segments, 3});
    store({}, mesh.vertices.positions.data());
    for (int64_t i = 0; i < segments; ++i) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(segments);
        store({std::cos(angle), std::sin(angle), 0}, mesh.vertices.positions.data() + 3 * (i + 1));
        const int64_t corners[3] = {0, i + 1, (i + 1) % segments + 1};
        for (int c = 0; c < 3; ++c) mesh.triangles.data()[3 * i + c] = static_cast<int32_t>(corners[c]);
    }
    return mesh;
}

}  // namespace

Mesh sphere_glyphs(View<const float, 2> points, View<const float, 1> radii, int subdivisions) {
    const Mesh sphere = sphere_mesh(1, subdivisions);
    require_points("sphere_glyphs", points, radii, sphere.faces());
    return copies_of(sphere, points.size(0), [&](int64_t i, const Vec3d& p) {
        return Vec3d{points(i, 0), points(i, 1), points(i, 2)} + radii(i) * p;
    });
}

Mesh surfel_glyphs(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> radii,
                   int64_t segments) {
    STIPPLE_REQUIRE(segments >= 3 && segments <= 100'000, "surfel_glyphs: {} segments, not 3 to 100000", segments);
    require_points("surfel_glyphs", points, radii, segments);
    const int64_t n = points.size(0);
    ops::require_clouds("surfel_glyphs", "normals", normals);
    STIPPLE_REQUIRE(normals.size(0) == n && normals.device() == Device{}, "surfel_glyphs: {} normals for {} points",
                    normals.size(0), n);
    std::vector<Vec3d> across(static_cast<size_t>(n)), up(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
        const Vec3d normal = unit(Vec3d{normals(i, 0), normals(i, 1), normals(i, 2)});
        STIPPLE_REQUIRE(is_finite(normal) && length(normal) > 0, "surfel_glyphs: normal {} has no direction", i);
        // Perpendicular to the normal and to the axis it is furthest from.
        const double x = std::abs(normal.x), y = std::abs(normal.y), z = std::abs(normal.z);
        const Vec3d axis = x <= y && x <= z ? Vec3d{1, 0, 0} : y <= z ? Vec3d{0, 1, 0} : Vec3d{0, 0, 1};
        across[i] = unit(cross(axis, normal));
        up[i] = cross(normal, across[i]);
    }
    return copies_of(disc(segments), n, [&](int64_t i, const Vec3d& p) {
        const Vec3d at = {points(i, 0), points(i, 1), points(i, 2)};
        return at + radii(i) * (p.x * across[i] + p.y * up[i]);
    });
}

}  // namespace stipple::geometry
