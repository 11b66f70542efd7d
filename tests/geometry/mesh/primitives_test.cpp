#include "stipple/geometry/primitives.h"

#include <gtest/gtest.h>

#include "stipple/geometry/mesh_edges.h"
#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/orient_faces.h"
#include "stipple/geometry/smooth_mesh.h"
#include "tests/geometry/mesh_shapes.h"

namespace stipple::test {
namespace {

/// Closed, oriented outwards, of one piece, of the given number of faces, Euler characteristic and area.
void expect_body(const Mesh& mesh, int64_t faces, int64_t euler, double area, double tolerance) {
    validate(mesh);
    EXPECT_EQ(mesh.faces(), faces);
    const geometry::MeshEdges edges = geometry::mesh_edges(mesh);
    EXPECT_EQ(mesh.vertices.size() - edges.size() + mesh.faces(), euler);
    const geometry::Orientation orientation = geometry::find_orientation(mesh);
    ASSERT_EQ(orientation.patches(), 1);
    EXPECT_TRUE(orientation.closed[0]);
    EXPECT_EQ(orientation.turned_faces, 0);
    EXPECT_NEAR(geometry::surface_area(mesh), area, tolerance * area);
}

TEST(GeometryPrimitives, AreClosedAndFaceOutwards) {
    const double pi = std::numbers::pi;
    for (int s = 0; s < 6; ++s)
        expect_body(geometry::sphere_mesh(3, s), int64_t{20} << (2 * s), 2, 36 * pi, 0.31 / (1 << (2 * s)));
    for (const float v : values_of(geometry::sphere_mesh(3, 2).vertices.positions)) EXPECT_LE(std::abs(v), 3);
    expect_body(geometry::cube_mesh(1, 2, 3), 12, 2, 22, 1e-7);
    expect_body(geometry::cylinder_mesh(2, 5, 300), 1200, 2, 2 * pi * 2 * 5 + 2 * pi * 4, 1e-3);
    expect_body(geometry::cylinder_mesh(1, 1, 3), 12, 2, 3 * std::sqrt(3.0) * (1 + 0.5), 1e-6);
    expect_body(geometry::cone_mesh(3, 4, 300), 600, 2, pi * 9 + pi * 3 * 5, 1e-3);
    expect_body(geometry::torus_mesh(2, 0.5, 200, 100), 40'000, 0, 4 * pi * pi * 2 * 0.5, 1e-3);
}

TEST(GeometryPrimitives, RefuseNonsense) {
    EXPECT_EQ(bad_argument_of([] { geometry::sphere_mesh(0); }), "sphere_mesh: radius 0");
    EXPECT_EQ(bad_argument_of([] { geometry::sphere_mesh(1, 11); }), "sphere_mesh: 11 subdivisions, not 0 to 10");
    EXPECT_EQ(bad_argument_of([] { geometry::cube_mesh(1, -1, 1); }), "cube_mesh: edge -1");
    EXPECT_EQ(bad_argument_of([] { geometry::cube_mesh(1, 1e300, 1); }), "cube_mesh: edge 1e+300");
    EXPECT_EQ(bad_argument_of([] { geometry::cylinder_mesh(1, 1, 2); }),
              "cylinder_mesh: 2 segments, not 3 to 10000000");
    EXPECT_EQ(bad_argument_of([] { geometry::cone_mesh(1, NAN); }), "cone_mesh: height nan");
    EXPECT_EQ(bad_argument_of([] { geometry::torus_mesh(1, 1); }),
              "torus_mesh: the minor radius 1 is not below the major 1");
}

Array<float, 2> smooth(const Mesh& mesh, const geometry::SmoothOptions& options) {
    Array<float, 2> smoothed({mesh.vertices.size(), 3});
    geometry::smooth_mesh(mesh, smoothed.view(), options);
    return smoothed;
}

/// The mean and the spread of the distances from the origin.
std::array<double, 2> radii_of(const Array<float, 2>& points) {
    double sum = 0, square = 0;
    const auto n = static_cast<double>(points.size(0));
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        const double r = std::sqrt(double{p[0]} * p[0] + double{p[1]} * p[1] + double{p[2]} * p[2]);
        sum += r / n, square += r * r / n;
    }
    return {sum, std::sqrt(std::max(0.0, square - sum * sum))};
}

TEST(GeometrySmoothMesh, OneStepIsTheMeanOfTheNeighbours) {
    const Mesh mesh = mesh_of({{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0, -1, 0}},
                              {{0, 1, 2}, {0, 2, 3}, {0, 3, 4}, {0, 4, 1}});
    geometry::SmoothOptions options;
    options.iterations = 1;
    options.step = 0.25;
    Array<float, 2> smoothed = smooth(mesh, options);
    EXPECT_EQ(smoothed.data()[2], 0.75f);
    for (int64_t i = 3; i < 15; ++i) EXPECT_EQ(smoothed.data()[i], mesh.vertices.positions.data()[i]);  // the border
    options.fix_boundary = false;
    smoothed = smooth(mesh, options);
    EXPECT_NEAR(smoothed.data()[3], 0.75, 1e-7);  // towards (0, 0, 1/3), the mean of the tip and two others
    EXPECT_NEAR(smoothed.data()[5], 0.25 / 3, 1e-7);
    options.iterations = 0;
    EXPECT_EQ(values_of(smooth(mesh, options)), values_of(mesh.vertices.positions));
}

TEST(GeometrySmoothMesh, TakesNoiseAwayAndTaubinDoesNotShrink) {
    Mesh mesh = geometry::sphere_mesh(1, 4);
    for (int64_t i = 0; i < 3 * mesh.vertices.size(); ++i)
        mesh.vertices.positions.data()[i] *= 1 + 0.03f * std::sin(static_cast<float>(i / 3 * 37 % 101));
    const auto [mean, spread] = radii_of(mesh.vertices.positions);
    for (const bool cotangent : {false, true}) {
        geometry::SmoothOptions options;
        options.cotangent = cotangent;
        options.iterations = 30;
        const auto [plain_mean, plain_spread] = radii_of(smooth(mesh, options));
        options.back_step = -0.53;
        const auto [taubin_mean, taubin_spread] = radii_of(smooth(mesh, options));
        EXPECT_LT(plain_spread, 0.2 * spread);
        EXPECT_LT(taubin_spread, 0.4 * spread);
        EXPECT_LT(plain_mean, 0.98 * mean);
        EXPECT_NEAR(taubin_mean, mean, 0.01);
        const auto [one, three] = on_threads([&] { return values_of(smooth(mesh, options)); });
        EXPECT_EQ(one, three);
    }
}

TEST(GeometrySmoothMesh, CotangentsLeaveAPlaneAlone) {
    // A flat fan with its middle off centre: a linear function is harmonic for cotangents, not for equal weights.
    std::vector<std::array<float, 3>> places = {{0.3f, 0.1f, 0}};
    std::vector<std::array<int32_t, 3>> faces;
    for (int32_t i = 0; i < 8; ++i) {
        const double u = 2 * std::numbers::pi * i / 8;
        places.push_back({static_cast<float>(std::cos(u)), static_cast<float>(std::sin(u)), 0});
        faces.push_back({0, i + 1, (i + 1) % 8 + 1});
    }
    const Mesh mesh = mesh_of(places, faces);
    geometry::SmoothOptions options;
    EXPECT_GT(std::abs(smooth(mesh, options).data()[0] - 0.3f), 0.1);
    options.cotangent = true;
    EXPECT_NEAR(smooth(mesh, options).data()[0], 0.3, 1e-6);
    EXPECT_NEAR(smooth(mesh, options).data()[1], 0.1, 1e-6);
}

TEST(GeometrySmoothMesh, LooseVerticesStayAndNonsenseIsRefused) {
    Mesh mesh = mesh_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {7, 8, 9}}, {{0, 1, 2}});
    EXPECT_EQ(smooth(mesh, {}).data()[10], 8);
    geometry::SmoothOptions options;
    options.step = 1.5;
    EXPECT_EQ(bad_argument_of([&] { smooth(mesh, options); }), "smooth_mesh: step 1.5, not 0 to 1");
    options = {};
    options.back_step = 0.1;
    EXPECT_EQ(bad_argument_of([&] { smooth(mesh, options); }), "smooth_mesh: back step 0.1, not -1 to 0");
    options = {};
    options.iterations = -1;
    EXPECT_EQ(bad_argument_of([&] { smooth(mesh, options); }), "smooth_mesh: -1 iterations");
}

}  // namespace
}  // namespace stipple::test
