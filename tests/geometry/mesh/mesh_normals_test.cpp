#include "stipple/geometry/mesh_normals.h"

#include <gtest/gtest.h>

#include "stipple/core/rng.h"
#include "tests/geometry/mesh_shapes.h"

namespace stipple::test {
namespace {

using geometry::NormalWeights;

Array<float, 2> vertex_normals_of(const Mesh& mesh, NormalWeights weights) {
    Array<float, 2> normals({mesh.vertices.size(), 3});
    geometry::vertex_normals(mesh, normals.view(), weights);
    return normals;
}

TEST(GeometryMeshNormals, OfFacesByTheRightHandRule) {
    const Mesh mesh = mesh_of({{0, 0, 0}, {2, 0, 0}, {0, 3, 0}, {1, 0, 0}, {0, 0, 1e-30f}, {0, 1e-30f, 0}},
                              {{0, 1, 2}, {0, 2, 1}, {0, 1, 3}, {2, 2, 1}, {0, 5, 4}});
    Array<float, 2> normals({5, 3});
    Array<float, 1> areas({5});
    geometry::face_normals(mesh, normals.view());
    geometry::face_areas(mesh, areas.view());
    // The fourth and the third have no area; the last is tiny and has a normal all the same.
    EXPECT_EQ(values_of(normals), (std::vector<float>{0, 0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 0, 1, 0, 0}));
    EXPECT_EQ(areas.data()[0], 3);
    EXPECT_EQ(areas.data()[1], 3);
    EXPECT_EQ(areas.data()[2], 0);
    EXPECT_EQ(areas.data()[3], 0);
    EXPECT_EQ(geometry::surface_area(mesh), 6);
}

TEST(GeometryMeshNormals, OfASphereAreItsPoints) {
    const Mesh mesh = geometry::sphere_mesh(2, 4);
    EXPECT_NEAR(geometry::surface_area(mesh), 16 * std::numbers::pi, 0.2);
    for (const auto weights : {NormalWeights::uniform, NormalWeights::area, NormalWeights::angle}) {
        const Array<float, 2> normals = vertex_normals_of(mesh, weights);
        for (int64_t i = 0; i < 3 * mesh.vertices.size(); ++i)
            ASSERT_NEAR(normals.data()[i], mesh.vertices.positions.data()[i] / 2,
                        weights == NormalWeights::angle ? 3e-3 : 2e-2);
    }
}

/// A corner of a cube, one of its three sides cut into two faces at the corner.
TEST(GeometryMeshNormals, AngleWeightsDoNotDependOnTheCut) {
    const Mesh mesh =
        mesh_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}}, {{0, 2, 4}, {0, 4, 1}, {0, 1, 3}, {0, 3, 2}});
    const float diagonal = static_cast<float>(-1 / std::sqrt(3.0));
    const Array<float, 2> angle = vertex_normals_of(mesh, NormalWeights::angle);
    for (int axis = 0; axis < 3; ++axis) EXPECT_NEAR(angle.data()[axis], diagonal, 1e-7);
    const Array<float, 2> uniform = vertex_normals_of(mesh, NormalWeights::uniform);
    EXPECT_NEAR(uniform.data()[2], -2 / std::sqrt(6.0), 1e-7);
    const Array<float, 2> area = vertex_normals_of(mesh, NormalWeights::area);
    EXPECT_NEAR(area.data()[2], -2 / std::sqrt(6.0), 1e-7);
}

TEST(GeometryMeshNormals, OfLooseAndCancellingVerticesAreZero) {
    const Mesh mesh = mesh_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {NAN, 0, 0}}, {{0, 1, 2}, {0, 2, 1}});
    EXPECT_EQ(values_of(vertex_normals_of(mesh, NormalWeights::angle)), std::vector<float>(12, 0));
}

TEST(GeometryMeshNormals, AgreeWithAPlainSumOnAnyThreads) {
    const Mesh mesh = wavy_torus(80);
    const auto [one, three] = on_threads([&] { return vertex_normals_of(mesh, NormalWeights::area); });
    EXPECT_EQ(values_of(one), values_of(three));
    std::vector<double> sums(3 * static_cast<size_t>(mesh.vertices.size()), 0);
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        double e[2][3];
        const int32_t* t = mesh.triangles.data() + 3 * f;
        for (int k = 0; k < 2; ++k)
            for (int axis = 0; axis < 3; ++axis)
                e[k][axis] =
                    double{mesh.vertices.positions.view()(t[k + 1], axis)} - mesh.vertices.positions.view()(t[0], axis);
        for (int axis = 0; axis < 3; ++axis) {
            const int j = (axis + 1) % 3, k = (axis + 2) % 3;
            for (int c = 0; c < 3; ++c) sums[3 * t[c] + axis] += e[0][j] * e[1][k] - e[0][k] * e[1][j];
        }
    }
    for (int64_t v = 0; v < mesh.vertices.size(); ++v) {
        const double* s = sums.data() + 3 * v;
        const double length = std::sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);
        for (int axis = 0; axis < 3; ++axis) ASSERT_NEAR(one.data()[3 * v + axis], s[axis] / length, 1e-6);
    }
    const auto [area_one, area_three] = on_threads([&] { return geometry::surface_area(mesh); });
    EXPECT_EQ(area_one, area_three);
}

TEST(GeometryMeshNormals, RefuseOtherShapes) {
    const Mesh mesh = geometry::cube_mesh();
    Array<float, 2> normals({8, 3});
    EXPECT_EQ(bad_argument_of([&] { geometry::face_normals(mesh, normals.view()); }),
              "face_normals: normals must be [12, 3], got [8, 3]");
    EXPECT_EQ(bad_argument_of([&] { geometry::vertex_normals(mesh, normals.view().slice(0, 7)); }),
              "vertex_normals: normals must be [8, 3], got [7, 3]");
}

}  // namespace
}  // namespace stipple::test
