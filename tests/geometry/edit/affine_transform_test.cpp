#include "stipple/geometry/affine_transform.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::AffineTransform;
using geometry::Vector3;

const AffineTransform kSkew = {{{{1, 0.5, 0}, {-0.25, 2, 0.125}, {0, 1, -1.5}}}, {10, -20, 30}};

TEST(GeometryAffine, PlacesAreTheWorldsRoundedOnce) {
    Mesh mesh = random_cloud(500, 4);
    mesh.vertices.origin = {500000, 4e6, 100};
    const Mesh moved = geometry::transformed(mesh, kSkew);
    const double reach = 4.1e6;  // of the sums in double
    for (int64_t i = 0; i < 500; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            long double expected = kSkew.translation[axis];
            for (int k = 0; k < 3; ++k)
                expected += static_cast<long double>(kSkew.linear[axis][k]) * mesh.vertices.world(i, k);
            ASSERT_NEAR(moved.vertices.world(i, axis), static_cast<double>(expected), 1e-15 * 4 * reach + 4e-6);
        }
}

TEST(GeometryAffine, ComposesAndInverts) {
    const AffineTransform back = inverse(kSkew) * kSkew;
    for (int i = 0; i < 3; ++i) {
        EXPECT_NEAR(back.translation[i], 0, 1e-12);
        for (int j = 0; j < 3; ++j) EXPECT_NEAR(back.linear[i][j], i == j, 1e-14);
    }
    AffineTransform flat = kSkew;
    flat.linear[2] = flat.linear[1];
    EXPECT_THROW(inverse(flat), Error);
    EXPECT_THROW(geometry::transformed(Mesh{}, flat), Error);
    const Vector3 point = {3, 4, 5};
    EXPECT_EQ(about(AffineTransform{kSkew.linear, {}}, point)(point), point);
}

TEST(GeometryAffine, AxesByName) {
    EXPECT_EQ(geometry::axis_swap("xzy")({1, 2, 3}), (Vector3{1, 3, 2}));
    EXPECT_EQ(geometry::axis_swap("x-zy")({1, 2, 3}), (Vector3{1, -3, 2}));
    EXPECT_EQ(geometry::axis_swap("-Y, +z, x")({1, 2, 3}), (Vector3{-2, 3, 1}));
    for (const char* text : {"", "xy", "xyy", "xyzx", "abc", "x y w", "xy0", "-"})
        EXPECT_THROW(geometry::axis_swap(text), Error) << text;
}

/// Normals of a moved mesh are those of its faces, whatever the matrix.
TEST(GeometryAffine, NormalsStayNormalAndFacesKeepTheirOutside) {
    for (AffineTransform transform : {kSkew, geometry::axis_swap("yxz"), AffineTransform{}}) {
        Mesh mesh;
        mesh.vertices = PointCloud(3);
        const float corners[9] = {0, 0, 0, 2, 0.5f, 0, 0.25f, 1, 3};
        std::copy_n(corners, 9, mesh.vertices.positions.data());
        mesh.triangles = Array<int32_t, 2>({1, 3});
        for (int i = 0; i < 3; ++i) mesh.triangles.data()[i] = i;
        const auto normal_of = [](const Mesh& m) {
            Vector3 e[2], n;
            const int32_t* t = m.triangles.data();
            for (int k = 0; k < 2; ++k)
                for (int axis = 0; axis < 3; ++axis)
                    e[k][axis] = m.vertices.world(t[k + 1], axis) - m.vertices.world(t[0], axis);
            for (int a = 0; a < 3; ++a)
                n[a] = e[0][(a + 1) % 3] * e[1][(a + 2) % 3] - e[0][(a + 2) % 3] * e[1][(a + 1) % 3];
            const double l = std::hypot(n[0], n[1], n[2]);
            return Vector3{n[0] / l, n[1] / l, n[2] / l};
        };
        Attribute normal("normal", DType::f32, 3, 3), velocity("velocity", DType::f64, 3, 3);
        const Vector3 before = normal_of(mesh);
        for (int i = 0; i < 9; ++i) {
            normal.as<float>().data()[i] = static_cast<float>(before[i % 3]);
            velocity.as<double>().data()[i] = i;
        }
        mesh.vertices.attributes.push_back(std::move(normal));
        mesh.vertices.attributes.push_back(std::move(velocity));
        add_attribute(mesh.vertices, "label", DType::u8);
        const Mesh moved = geometry::transformed(mesh, transform);
        const Vector3 after = normal_of(moved);
        for (int axis = 0; axis < 3; ++axis) {
            EXPECT_NEAR(find(moved.vertices.attributes, "normal")->value(1, axis), after[axis], 1e-6);
            EXPECT_NEAR(find(moved.vertices.attributes, "velocity")->value(1, axis), transform.turn({3, 4, 5})[axis],
                        1e-12);
        }
        EXPECT_EQ(*find(moved.vertices.attributes, "label"), *find(mesh.vertices.attributes, "label"));
    }
}

TEST(GeometryAffine, TheViewpointMovesWhereShapesStay) {
    Mesh mesh = random_cloud(3);
    mesh.vertices.facts.viewpoint = {1, 2, 3, 1, 0, 0, 0};
    mesh.vertices.facts.grid = FileFacts::Grid{};
    AffineTransform turn = geometry::to_affine(geometry::rotation_about({0, 0, 1}, M_PI / 2));
    for (auto& row : turn.linear)
        for (double& x : row) x *= 2;
    turn.translation = {0, 0, 1};
    const FileFacts facts = geometry::transformed(mesh, turn).vertices.facts;
    ASSERT_TRUE(facts.viewpoint);
    const double expected[7] = {-4, 2, 7, std::sqrt(0.5), 0, 0, std::sqrt(0.5)};
    for (int i = 0; i < 7; ++i) EXPECT_NEAR((*facts.viewpoint)[i], expected[i], 1e-12) << i;
    EXPECT_FALSE(facts.grid);
    EXPECT_FALSE(geometry::transformed(mesh, kSkew).vertices.facts.viewpoint);
    EXPECT_FALSE(geometry::transformed(mesh, geometry::axis_swap("yxz")).vertices.facts.viewpoint);
}

TEST(GeometryAffine, NonFinitePointsAndEmptyClouds) {
    Mesh mesh = random_cloud(4);
    mesh.vertices.positions.data()[4] = NAN;
    mesh.vertices.positions.data()[6] = HUGE_VALF;
    const Mesh moved = geometry::transformed(mesh, kSkew);
    EXPECT_EQ(bounds_of(moved.vertices).finite, 2);
    EXPECT_EQ(geometry::transformed(Mesh{}, kSkew).vertices.size(), 0);
    AffineTransform huge;
    huge.linear[0][0] = NAN;
    EXPECT_THROW(geometry::transformed(mesh, huge), Error);
}

TEST(GeometryAffine, TextReadsBack) {
    EXPECT_EQ(geometry::parse_affine(to_text(kSkew)), kSkew);
    for (const char* text : {"", "1 2 3", "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 2", "nan 0 0 0 0 1 0 0 0 0 1 0",
                             "1 0 0 inf 0 1 0 0 0 0 1 0", "1 0 0 x 0 1 0 0 0 0 1 0"})
        EXPECT_THROW(geometry::parse_affine(text), Error) << text;
}

}  // namespace
}  // namespace stipple::test
