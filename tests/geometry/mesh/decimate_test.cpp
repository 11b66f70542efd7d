#include "stipple/geometry/decimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/components.h"
#include "stipple/geometry/mesh_check.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/sample_surface.h"
#include "tests/geometry/mesh_shapes.h"

namespace stipple::test {
namespace {

using geometry::decimate;
using geometry::MeshPart;

/// The largest distance from points of one mesh to the other.
double largest_distance(const Mesh& from, const Mesh& to) {
    const geometry::SurfaceSamples samples = geometry::sample_surface(from, 20'000, 1);
    Array<float, 1> distances({20'000});
    geometry::ClosestPoints found;
    found.distances = distances.view();
    geometry::closest_point(geometry::MeshIndex(to), samples.points.view(), found);
    return *std::max_element(distances.data(), distances.data() + 20'000);
}

TEST(GeometryDecimate, StaysNearClosedAndOfTheSameGenus) {
    const Mesh mesh = wavy_torus(64);
    for (const int64_t faces : {4000, 1000, 300}) {
        const MeshPart part = decimate(mesh, faces);
        validate(part.mesh);
        EXPECT_LE(part.mesh.faces(), faces);
        EXPECT_GE(part.mesh.faces(), faces - 2);
        const geometry::MeshCheck check = geometry::check_mesh(part.mesh);
        EXPECT_TRUE(check.is_watertight(part.mesh));
        EXPECT_EQ(check.euler, 0);
        EXPECT_EQ(check.unreferenced_vertices, 0);
        // The tube is 0.7 wide. An even grid of as many faces as 300 is 0.03 off.
        const double limit = faces == 4000 ? 0.008 : faces == 1000 ? 0.025 : 0.08;
        EXPECT_LT(largest_distance(part.mesh, mesh), limit) << faces;
        EXPECT_LT(largest_distance(mesh, part.mesh), limit) << faces;
    }
}

TEST(GeometryDecimate, FlatPartsCostNothing) {
    // A cube of 16 x 16 quads a side comes back to its 12 faces, exactly.
    std::vector<std::array<float, 3>> places;
    std::vector<std::array<int32_t, 3>> faces;
    std::map<std::array<float, 3>, int32_t> index;
    const auto vertex = [&](int axis, int side, int i, int j) {
        std::array<float, 3> p = {};
        p[axis] = side ? 1.0f : 0.0f;
        p[(axis + 1) % 3] = static_cast<float>(i) / 16, p[(axis + 2) % 3] = static_cast<float>(j) / 16;
        const auto [at, is_new] = index.try_emplace(p, static_cast<int32_t>(places.size()));
        if (is_new) places.push_back(p);
        return at->second;
    };
    for (int axis = 0; axis < 3; ++axis)
        for (int side = 0; side < 2; ++side)
            for (int i = 0; i < 16; ++i)
                for (int j = 0; j < 16; ++j) {
                    const int32_t a = vertex(axis, side, i, j), b = vertex(axis, side, i + 1, j),
                                  c = vertex(axis, side, i + 1, j + 1), d = vertex(axis, side, i, j + 1);
                    faces.push_back(side ? std::array{a, b, c} : std::array{a, c, b});
                    faces.push_back(side ? std::array{a, c, d} : std::array{a, d, c});
                }
    const Mesh mesh = mesh_of(places, faces);
    ASSERT_TRUE(geometry::check_mesh(mesh).is_watertight(mesh));
    const MeshPart part = decimate(mesh, 12);
    EXPECT_EQ(part.mesh.faces(), 12);
    EXPECT_NEAR(geometry::check_mesh(part.mesh).volume, 1, 1e-6);
    EXPECT_NEAR(geometry::surface_area(part.mesh), 6, 1e-5);
}

TEST(GeometryDecimate, AnErrorSaysWhereToStop) {
    const Mesh mesh = wavy_torus(64);
    int64_t before = mesh.faces() + 1;
    for (const double error : {0.0, 0.002, 0.008, 0.03}) {
        const MeshPart part = decimate(mesh, 0, error);
        const geometry::MeshCheck check = geometry::check_mesh(part.mesh);
        EXPECT_TRUE(check.is_watertight(part.mesh));
        EXPECT_EQ(check.euler, 0);
        EXPECT_LT(part.mesh.faces(), before) << error;
        before = part.mesh.faces();
        EXPECT_LE(largest_distance(mesh, part.mesh), 5 * error + 1e-6) << error;
        EXPECT_LE(largest_distance(part.mesh, mesh), 5 * error + 1e-6) << error;
    }
    EXPECT_LT(before, mesh.faces() / 10);
    EXPECT_EQ(decimate(mesh, 6000, 0.008).mesh.faces(), 6000);  // whichever comes first
    EXPECT_THROW(decimate(mesh, 0, -1), Error);
    EXPECT_THROW(decimate(mesh, 0, NAN), Error);
}

TEST(GeometryDecimate, BordersStay) {
    // A flat square of 20 x 20 quads: all that is left is its outline.
    std::vector<std::array<float, 3>> places;
    std::vector<std::array<int32_t, 3>> faces;
    for (int i = 0; i <= 20; ++i)
        for (int j = 0; j <= 20; ++j) places.push_back({static_cast<float>(i), static_cast<float>(j), 5});
    for (int32_t i = 0; i < 20; ++i)
        for (int32_t j = 0; j < 20; ++j) {
            const int32_t a = 21 * i + j, b = a + 21, c = b + 1, d = a + 1;
            faces.push_back({a, b, c});
            faces.push_back({a, c, d});
        }
    const MeshPart part = decimate(mesh_of(places, faces), 2);
    EXPECT_EQ(part.mesh.faces(), 2);
    EXPECT_NEAR(geometry::surface_area(part.mesh), 400, 1e-2);
}

TEST(GeometryDecimate, TellsWhatBecameOfVerticesAndKeepsAttributes) {
    Mesh mesh = geometry::sphere_mesh(1, 3);
    mesh.vertices.origin = {500'000, 5'000'000, 0};
    number_parts(mesh);
    const MeshPart part = decimate(mesh, 200);
    validate(part.mesh);
    EXPECT_EQ(part.mesh.vertices.origin, mesh.vertices.origin);
    for (int64_t v = 0; v < part.mesh.vertices.size(); ++v) {
        EXPECT_EQ(find(part.mesh.vertices.attributes, "vertex_id")->value(v), part.vertices.data()[v]);
        EXPECT_EQ(part.new_vertices.data()[part.vertices.data()[v]], v);
    }
    for (int64_t f = 0; f < part.mesh.faces(); ++f)
        EXPECT_EQ(find(part.mesh.face_attributes, "face_id")->value(f), part.faces.data()[f]);
    for (int64_t v = 0; v < mesh.vertices.size(); ++v) {  // on a part of the sphere, not across it
        const int32_t into = part.new_vertices.data()[v];
        ASSERT_GE(into, 0);
        double product = 0;
        for (int axis = 0; axis < 3; ++axis)
            product += mesh.vertices.positions.view()(v, axis) * part.mesh.vertices.positions.view()(into, axis);
        EXPECT_GT(product, 0.6);
    }
}

TEST(GeometryDecimate, StopsAtTheSmallestBodies) {
    const Mesh sphere = geometry::sphere_mesh(1, 2);
    const MeshPart part = decimate(sphere, 0);
    EXPECT_TRUE(geometry::check_mesh(part.mesh).is_watertight(part.mesh));
    EXPECT_LE(part.mesh.faces(), 20);
    EXPECT_GE(part.mesh.faces(), 4);
    const Mesh* two[] = {&sphere, &sphere};
    EXPECT_EQ(geometry::connected_components(decimate(geometry::merge_meshes(two), 100).mesh).size(), 2);
    EXPECT_EQ(decimate(sphere, 10'000).mesh.faces(), sphere.faces());
    EXPECT_EQ(decimate(mesh_of({{1, 2, 3}}, {}), 0).mesh.vertices.size(), 1);
}

TEST(GeometryDecimate, TakesAnyMeshAndRefusesNonsense) {
    // Three wings on one edge, a face with a vertex twice, a vertex without faces.
    const Mesh mesh = mesh_of({{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {-1, -1, 0}, {9, 9, 9}},
                              {{0, 1, 2}, {0, 1, 3}, {1, 0, 4}, {2, 2, 3}});
    const MeshPart part = decimate(mesh, 4);
    EXPECT_EQ(values_of(part.faces), (std::vector<int32_t>{0, 1, 2}));
    EXPECT_EQ(part.mesh.vertices.size(), 6);
    EXPECT_EQ(bad_argument_of([&] { decimate(mesh, -1); }), "decimate: -1 faces");
}

}  // namespace
}  // namespace stipple::test
