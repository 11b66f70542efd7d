#include "stipple/geometry/mesh_parts.h"

#include <gtest/gtest.h>

#include "tests/geometry/mesh_shapes.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::MeshPart;

/// The attributes of number_parts tell where vertices and faces came from; so does the part.
void expect_consistent(const Mesh& mesh, const MeshPart& part) {
    validate(part.mesh);
    EXPECT_EQ(part.mesh.vertices.origin, mesh.vertices.origin);
    ASSERT_EQ(part.vertices.size(0), part.mesh.vertices.size());
    ASSERT_EQ(part.faces.size(0), part.mesh.faces());
    ASSERT_EQ(part.new_vertices.size(0), mesh.vertices.size());
    for (int64_t v = 0; v < part.mesh.vertices.size(); ++v) {
        const int32_t old = part.vertices.data()[v];
        EXPECT_EQ(find(part.mesh.vertices.attributes, "vertex_id")->value(v), old);
        EXPECT_EQ(part.new_vertices.data()[old], v);
        for (int axis = 0; axis < 3; ++axis)
            EXPECT_EQ(part.mesh.vertices.positions.view()(v, axis), mesh.vertices.positions.view()(old, axis));
    }
    for (int64_t f = 0; f < part.mesh.faces(); ++f) {
        const int32_t old = part.faces.data()[f];
        EXPECT_EQ(find(part.mesh.face_attributes, "face_id")->value(f), old);
        for (int c = 0; c < 3; ++c)
            EXPECT_EQ(part.mesh.triangles.view()(f, c), part.new_vertices.data()[mesh.triangles.view()(old, c)]);
    }
}

/// Six vertices, one of them loose; faces of every doubtful kind.
Mesh messy_mesh() {
    Mesh mesh = mesh_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {9, 9, 9}, {2, 0, 0}, {0, 0, 1}},
                        {{0, 1, 2}, {1, 2, 0}, {0, 2, 1}, {0, 1, 4}, {1, 1, 5}, {0, 5, 2}, {5, 2, 0}});
    mesh.vertices.origin = {1e6, -2e6, 30};
    number_parts(mesh);
    return mesh;
}

TEST(GeometryMeshParts, DropUnreferencedVertices) {
    const Mesh mesh = messy_mesh();
    const MeshPart part = geometry::drop_unreferenced_vertices(mesh);
    expect_consistent(mesh, part);
    EXPECT_EQ(values_of(part.vertices), (std::vector<int32_t>{0, 1, 2, 4, 5}));
    EXPECT_EQ(values_of(part.new_vertices), (std::vector<int32_t>{0, 1, 2, -1, 3, 4}));
    EXPECT_EQ(part.mesh.faces(), 7);
}

TEST(GeometryMeshParts, DropDegenerateFaces) {
    Mesh mesh = messy_mesh();
    const MeshPart part = geometry::drop_degenerate_faces(mesh);
    expect_consistent(mesh, part);
    EXPECT_EQ(values_of(part.faces), (std::vector<int32_t>{0, 1, 2, 5, 6}));  // not 3, on a line, and 4, twice vertex 1
    EXPECT_EQ(part.mesh.vertices.size(), 6);
    mesh.vertices.positions.data()[3 * 5] = NAN;  // nobody knows whether that face has an area
    EXPECT_EQ(values_of(geometry::drop_degenerate_faces(mesh).faces), (std::vector<int32_t>{0, 1, 2, 5, 6}));
}

TEST(GeometryMeshParts, DropDuplicateFaces) {
    const Mesh mesh = messy_mesh();
    const MeshPart part = geometry::drop_duplicate_faces(mesh);
    expect_consistent(mesh, part);
    EXPECT_EQ(values_of(part.faces), (std::vector<int32_t>{0, 3, 4, 5}));
    const MeshPart sides = geometry::drop_duplicate_faces(mesh, false);
    expect_consistent(mesh, sides);
    EXPECT_EQ(values_of(sides.faces), (std::vector<int32_t>{0, 2, 3, 4, 5}));
}

TEST(GeometryMeshParts, SelectFacesAndVertices) {
    const Mesh mesh = messy_mesh();
    const int32_t faces[] = {5, 0, 5};
    const MeshPart part = geometry::select_faces(mesh, View<const int32_t, 1>(faces, {3}));
    expect_consistent(mesh, part);
    EXPECT_EQ(values_of(part.faces), (std::vector<int32_t>{5, 0, 5}));
    EXPECT_EQ(part.mesh.vertices.size(), 6);
    const uint8_t keep[] = {1, 1, 1, 1, 0, 7};
    const MeshPart kept = geometry::select_vertices(mesh, View<const uint8_t, 1>(keep, {6}));
    expect_consistent(mesh, kept);
    EXPECT_EQ(values_of(kept.faces), (std::vector<int32_t>{0, 1, 2, 4, 5, 6}));
    EXPECT_EQ(values_of(kept.new_vertices), (std::vector<int32_t>{0, 1, 2, 3, -1, 4}));

    const int32_t wrong[] = {7};
    EXPECT_EQ(bad_argument_of([&] { geometry::select_faces(mesh, View<const int32_t, 1>(wrong, {1})); }),
              "select_faces: face 7 of 7");
    EXPECT_EQ(bad_argument_of([&] { geometry::select_vertices(mesh, View<const uint8_t, 1>(keep, {5})); }),
              "select_vertices: 5 marks for 6 vertices");
}

TEST(GeometryMeshParts, MeshesWithoutFacesOrVertices) {
    for (const Mesh& mesh : {mesh_of({}, {}), mesh_of({{1, 2, 3}}, {}), Mesh()}) {
        EXPECT_EQ(geometry::drop_unreferenced_vertices(mesh).mesh.vertices.size(), 0);
        EXPECT_EQ(geometry::drop_degenerate_faces(mesh).mesh.vertices.size(), mesh.vertices.size());
        EXPECT_EQ(geometry::drop_duplicate_faces(mesh).mesh.faces(), 0);
        EXPECT_EQ(geometry::select_faces(mesh, {}).mesh.vertices.size(), mesh.vertices.size());
    }
}

TEST(GeometryMeshParts, BrokenMeshesAreRefused) {
    Mesh mesh = messy_mesh();
    mesh.triangles.data()[0] = 6;
    EXPECT_EQ(bad_argument_of([&] { geometry::drop_unreferenced_vertices(mesh); }), "triangle index 6 of 6 vertices");
}

TEST(GeometryMergeMeshes, KeepsEverythingInOrder) {
    Mesh a = geometry::cube_mesh(), b = geometry::sphere_mesh(1, 1);
    number_parts(a);
    number_parts(b);
    a.vertices.origin = b.vertices.origin = {10, 20, 30};
    const Mesh* both[] = {&a, &b};
    std::vector<std::string> filled = {"stale"};
    const Mesh merged = geometry::merge_meshes(both, &filled);
    validate(merged);
    EXPECT_TRUE(filled.empty());
    EXPECT_EQ(merged.vertices.origin, a.vertices.origin);
    const int64_t n = a.vertices.size(), m = a.faces();
    for (int64_t i = 0; i < merged.vertices.size(); ++i) {
        const Mesh& from = i < n ? a : b;
        const int64_t v = i < n ? i : i - n;
        EXPECT_EQ(find(merged.vertices.attributes, "vertex_id")->value(i), v);
        for (int axis = 0; axis < 3; ++axis)
            EXPECT_EQ(merged.vertices.positions.view()(i, axis), from.vertices.positions.view()(v, axis));
    }
    for (int64_t i = 0; i < merged.faces(); ++i) {
        EXPECT_EQ(find(merged.face_attributes, "face_id")->value(i), i < m ? i : i - m);
        for (int c = 0; c < 3; ++c)
            EXPECT_EQ(merged.triangles.view()(i, c),
                      i < m ? a.triangles.view()(i, c) : b.triangles.view()(i - m, c) + n);
    }
    const Mesh* only[] = {&b};
    EXPECT_EQ(difference(geometry::merge_meshes(only), b), "");
}

TEST(GeometryMergeMeshes, BringsOriginsTogetherWithoutLoss) {
    // Two tiles of a map, a kilometre apart, with origins of their own; a third has no vertices and no say.
    Mesh a = geometry::cube_mesh(), b = geometry::cube_mesh(3, 5, 7), nothing = mesh_of({}, {});
    a.vertices.origin = {500'000, 5'400'000, 400};
    b.vertices.origin = {501'000.25, 5'400'000.5, 400};
    nothing.vertices.origin = {-9e9, 0, 0};
    const Mesh* all[] = {&a, &nothing, &b};
    const Mesh merged = geometry::merge_meshes(all);
    ASSERT_EQ(merged.vertices.size(), 16);
    for (int64_t v = 0; v < 16; ++v) {
        const PointCloud& from = v < 8 ? a.vertices : b.vertices;
        for (int axis = 0; axis < 3; ++axis) {
            // Coordinates of about 500 about the new origin: half a unit in the last place of those.
            EXPECT_NEAR(merged.vertices.world(v, axis), from.world(v % 8, axis), 3.1e-5);
            EXPECT_LE(std::abs(merged.vertices.positions.view()(v, axis)), 512);
        }
    }
}

TEST(GeometryMergeMeshes, FillsWhatAMeshLacks) {
    Mesh a = geometry::cube_mesh(), b = geometry::cube_mesh();
    add_normals(a.vertices);
    add_attribute(b.vertices, "label", DType::u8);
    add_attribute(b.vertices, "time", DType::f64);
    b.face_attributes.push_back(Attribute("part", DType::i32, 12, 1));
    std::fill_n(b.face_attributes[0].as<int32_t>().data(), 12, 5);
    const Mesh* both[] = {&a, &b};
    std::vector<std::string> filled;
    const Mesh merged = geometry::merge_meshes(both, &filled);
    validate(merged);
    EXPECT_EQ(filled, (std::vector<std::string>{"normal", "label", "time", "part"}));
    for (int64_t v = 0; v < 8; ++v) {
        EXPECT_EQ(find(merged.vertices.attributes, "normal")->value(v, 2), a.vertices.attributes[0].value(v, 2));
        EXPECT_TRUE(std::isnan(find(merged.vertices.attributes, "normal")->value(v + 8, 2)));
        EXPECT_EQ(find(merged.vertices.attributes, "label")->value(v), 0);
        EXPECT_EQ(find(merged.vertices.attributes, "label")->value(v + 8), b.vertices.attributes[0].value(v));
        EXPECT_TRUE(std::isnan(find(merged.vertices.attributes, "time")->value(v)));
    }
    EXPECT_EQ(find(merged.face_attributes, "part")->value(11), 0);
    EXPECT_EQ(find(merged.face_attributes, "part")->value(12), 5);
    for (const DType dtype : {DType::f16, DType::bf16}) {
        Mesh c = geometry::cube_mesh();
        c.vertices.attributes.push_back(Attribute("half", dtype, 8, 1));
        const Mesh* pair[] = {&a, &c};
        const Mesh with_half = geometry::merge_meshes(pair);
        EXPECT_TRUE(std::isnan(find(with_half.vertices.attributes, "half")->value(0)));
    }
}

TEST(GeometryMergeMeshes, NamesWhatDoesNotFit) {
    Mesh a = geometry::cube_mesh(), b = geometry::cube_mesh();
    add_colors(a.vertices, 3);
    add_colors(b.vertices, 4);
    const Mesh* both[] = {&a, &b};
    EXPECT_EQ(bad_argument_of([&] { geometry::merge_meshes(both); }),
              "merge_meshes: vertex attribute color is uint8 x 3 in mesh 0 and uint8 x 4 in mesh 1");
    EXPECT_EQ(geometry::merge_meshes({}).vertices.size(), 0);
}

}  // namespace
}  // namespace stipple::test
