#include "stipple/geometry/orient_faces.h"

#include <gtest/gtest.h>

#include "stipple/core/rng.h"
#include "stipple/geometry/mesh_edges.h"
#include "stipple/geometry/mesh_parts.h"
#include "tests/geometry/mesh_shapes.h"

namespace stipple::test {
namespace {

/// Turns about half of the faces.
void shuffle_sides(Mesh& mesh, uint64_t seed) {
    for (int64_t f = 0; f < mesh.faces(); ++f)
        if (Rng(seed).bits(static_cast<uint64_t>(f)) & 1)
            std::swap(mesh.triangles.data()[3 * f], mesh.triangles.data()[3 * f + 1]);
}

double volume_of(const Mesh& mesh) {
    double sum = 0;
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        double p[3][3];
        for (int c = 0; c < 3; ++c)
            for (int axis = 0; axis < 3; ++axis)
                p[c][axis] = mesh.vertices.positions.view()(mesh.triangles.view()(f, c), axis);
        for (int axis = 0; axis < 3; ++axis) {
            const int j = (axis + 1) % 3, k = (axis + 2) % 3;
            sum += p[0][axis] * (p[1][j] * p[2][k] - p[1][k] * p[2][j]) / 6;
        }
    }
    return sum;
}

/// Edges of two faces that both run along them the same way.
int64_t disagreements(const Mesh& mesh) {
    const geometry::MeshEdges edges = geometry::mesh_edges(mesh);
    int64_t count = 0;
    for (int64_t e = 0; e < edges.size(); ++e)
        count += edges.faces_on(e) == 2 && mesh.triangles.data()[edges.half_edges[edges.offsets[e]]] ==
                                               mesh.triangles.data()[edges.half_edges[edges.offsets[e] + 1]];
    return count;
}

TEST(GeometryOrientFaces, ClosedMeshesFaceOutwards) {
    for (const Mesh& shape :
         {geometry::sphere_mesh(1, 3), geometry::cube_mesh(), wavy_torus(20), geometry::cone_mesh()}) {
        const double volume = volume_of(shape);
        EXPECT_GT(volume, 0);
        Mesh mesh = shape.clone();
        EXPECT_EQ(geometry::orient_faces(mesh).turned_faces, 0);  // nothing to do
        for (const uint64_t seed : {1, 2, 3}) {
            shuffle_sides(mesh, seed);
            EXPECT_GT(disagreements(mesh), 0);
            const geometry::Orientation found = geometry::orient_faces(mesh);
            EXPECT_EQ(found.patches(), 1);
            EXPECT_TRUE(found.closed[0] && found.orientable[0]);
            EXPECT_GT(found.turned_faces, 0);
            EXPECT_EQ(disagreements(mesh), 0);
            EXPECT_NEAR(volume_of(mesh), volume, 1e-9);
        }
    }
}

TEST(GeometryOrientFaces, FarFromTheOriginToo) {
    Mesh mesh = geometry::sphere_mesh(1, 2);
    for (float& v : mesh.vertices.positions.span()) v += 10'000;
    for (int64_t f = 0; f < mesh.faces(); ++f)
        std::swap(mesh.triangles.data()[3 * f], mesh.triangles.data()[3 * f + 1]);
    EXPECT_EQ(geometry::orient_faces(mesh).turned_faces, mesh.faces());
}

/// A strip of n quads; with a half turn the ends meet the wrong way round.
Mesh strip(int32_t n, bool closed, bool twisted) {
    std::vector<std::array<float, 3>> places;
    std::vector<std::array<int32_t, 3>> faces;
    for (int32_t i = 0; i < n + (closed ? 0 : 1); ++i) {
        const double u = 2 * std::numbers::pi * i / n, t = twisted ? u / 2 : 0;
        for (const double side : {-0.3, 0.3}) {
            const double r = 1 + side * std::cos(t);
            places.push_back({static_cast<float>(r * std::cos(u)), static_cast<float>(r * std::sin(u)),
                              static_cast<float>(side * std::sin(t))});
        }
    }
    for (int32_t i = 0; i < n; ++i) {
        int32_t c = 2 * i + 2, d = 2 * i + 3;
        if (closed && i == n - 1) c = twisted ? 1 : 0, d = twisted ? 0 : 1;
        faces.push_back({2 * i, 2 * i + 1, c});
        faces.push_back({2 * i + 1, d, c});
    }
    return mesh_of(places, faces);
}

TEST(GeometryOrientFaces, OpenMeshesKeepTheSideOfMostFaces) {
    Mesh mesh = strip(20, true, false);
    const Mesh before = mesh.clone();
    for (const int64_t f : {0, 7, 8, 20}) std::swap(mesh.triangles.data()[3 * f], mesh.triangles.data()[3 * f + 2]);
    const geometry::Orientation found = geometry::orient_faces(mesh);
    EXPECT_EQ(found.turned_faces, 4);
    EXPECT_FALSE(found.closed[0]);
    EXPECT_EQ(disagreements(mesh), 0);
    for (const int64_t f : {0, 7, 8, 20}) EXPECT_EQ(found.turned.data()[f], 1);
}

TEST(GeometryOrientFaces, AMoebiusStripStaysAsItIsAndIsReported) {
    const Mesh moebius = strip(21, true, true), sphere = geometry::sphere_mesh(0.2, 1);
    const Mesh* both[] = {&moebius, &sphere};
    Mesh mesh = geometry::merge_meshes(both);
    std::swap(mesh.triangles.data()[3 * 50], mesh.triangles.data()[3 * 50 + 1]);  // of the sphere
    const std::vector<int32_t> before = values_of(mesh.triangles);
    const geometry::Orientation found = geometry::orient_faces(mesh);
    ASSERT_EQ(found.patches(), 2);
    EXPECT_FALSE(found.orientable[0]);
    EXPECT_TRUE(found.orientable[1] && found.closed[1]);
    EXPECT_EQ(found.turned_faces, 1);
    EXPECT_EQ(found.turned.data()[50], 1);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + 3 * 42, mesh.triangles.data()));
}

TEST(GeometryOrientFaces, EdgesOfThreeFacesSeparatePatches) {
    // Three wings of one edge, and a face that has a vertex twice.
    Mesh mesh = mesh_of({{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {-1, -1, 0}},
                        {{0, 1, 2}, {0, 1, 3}, {1, 0, 4}, {2, 2, 3}});
    const geometry::Orientation found = geometry::orient_faces(mesh);
    EXPECT_EQ(found.patches(), 4);
    EXPECT_EQ(found.turned_faces, 0);
    Mesh empty = mesh_of({}, {});
    EXPECT_EQ(geometry::orient_faces(empty).patches(), 0);
}

TEST(GeometryOrientFaces, NormalsOfFacesTurnAlong) {
    Mesh mesh = geometry::cube_mesh();
    Attribute normal("normal", DType::f32, 12, 3);
    for (int i = 0; i < 36; ++i) normal.as<float>().data()[i] = static_cast<float>(i);
    mesh.face_attributes.push_back(std::move(normal));
    number_parts(mesh);
    std::swap(mesh.triangles.data()[3 * 4], mesh.triangles.data()[3 * 4 + 1]);
    const geometry::Orientation found = geometry::orient_faces(mesh);
    EXPECT_EQ(found.turned_faces, 1);
    for (int i = 0; i < 36; ++i)
        EXPECT_EQ(mesh.face_attributes[0].as<float>().data()[i], static_cast<float>(i / 3 == 4 ? -i : i));
    EXPECT_EQ(find(mesh.face_attributes, "face_id")->value(4), 4);
}

}  // namespace
}  // namespace stipple::test
