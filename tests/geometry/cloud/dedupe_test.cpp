#include "stipple/geometry/dedupe.h"

#include <gtest/gtest.h>

#include <numeric>

#include "stipple/core/rng.h"
#include "stipple/geometry/mesh_edges.h"
#include "tests/geometry/mesh_shapes.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::unique_points;
using geometry::UniquePoints;

/// The contract, word by word: for each point the first staying one within the distance.
std::vector<int32_t> naive(const Array<float, 2>& points, float distance) {
    std::vector<int32_t> staying, unique_of;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        const bool finite = std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
        int32_t found = -1;
        for (size_t k = 0; finite && found < 0 && k < staying.size(); ++k) {
            double sum = 0;
            for (int axis = 0; axis < 3; ++axis) {
                const double d = double{p[axis]} - points.data()[3 * staying[k] + axis];
                sum += d * d;
            }
            if (sum <= double{distance} * distance) found = static_cast<int32_t>(k);
        }
        unique_of.push_back(found < 0 ? static_cast<int32_t>(staying.size()) : found);
        if (found < 0) staying.push_back(static_cast<int32_t>(i));
    }
    return unique_of;
}

void expect_naive(const Array<float, 2>& points, float distance) {
    const UniquePoints unique = unique_points(points.view(), distance);
    const std::vector<int32_t> expected = naive(points, distance);
    ASSERT_EQ(values_of(unique.unique_of), expected) << "distance " << distance;
    for (int64_t k = 0; k < unique.kept.size(0); ++k) {
        EXPECT_EQ(unique.unique_of.data()[unique.kept.data()[k]], k);
        if (k > 0) {
            EXPECT_LT(unique.kept.data()[k - 1], unique.kept.data()[k]);
        }
    }
}

Array<float, 2> random_points(int64_t n, uint64_t seed) {
    return random_cloud(n, seed).vertices.positions.clone();
}

TEST(GeometryDedupe, IsTheGreedyChoiceByIndex) {
    for (const int64_t n : {0, 1, 2, 37, 3000}) {
        const Array<float, 2> points = random_points(n, 3);
        for (const float distance : {0.0f, 1e-7f, 0.003f, 0.01f, 0.03f, 0.1f, 5.0f}) expect_naive(points, distance);
    }
}

TEST(GeometryDedupe, DuplicatesLatticesLinesAndStrayPoints) {
    Array<float, 2> points = random_points(2000, 5);
    for (int64_t i = 0; i < 1000; ++i)  // every second point again, in another order
        std::copy_n(points.data() + 3 * (2 * ((i * 7) % 500)), 3, points.data() + 3 * (1000 + i));
    for (const float distance : {0.0f, 1e-9f, 0.01f}) expect_naive(points, distance);

    Array<float, 2> lattice({1000, 3});  // distances of exactly 1: within
    for (int64_t i = 0; i < 1000; ++i) {
        lattice.data()[3 * i] = static_cast<float>(i % 10), lattice.data()[3 * i + 1] = static_cast<float>(i / 10 % 10);
        lattice.data()[3 * i + 2] = static_cast<float>(i / 100);
    }
    for (const float distance : {0.0f, 0.5f, 1.0f, 1.5f, 3.0f}) expect_naive(lattice, distance);

    Array<float, 2> line({500, 3});  // each within reach of the next: no chains
    for (int64_t i = 0; i < 500; ++i) {
        const float place[3] = {static_cast<float>(i) * 0.6f, 0, 0};
        std::copy_n(place, 3, line.data() + 3 * i);
    }
    expect_naive(line, 1);
    EXPECT_EQ(unique_points(line.view(), 1).kept.size(0), 250);

    points.data()[0] = 1e9f, points.data()[4] = -3e20f, points.data()[8] = 1e38f;  // too wide a box for a grid
    for (const float distance : {0.0f, 1e-9f, 0.003f, 0.03f, 1e10f}) expect_naive(points, distance);
}

TEST(GeometryDedupe, ZerosAreEqualAndNonFinitePointsStay) {
    const float nan = NAN, inf = INFINITY;
    Array<float, 2> points({7, 3});
    const float values[] = {0, 0, 0, -0.0f, 0, -0.0f, nan, 0, 0, nan, 0, 0, inf, 0, 0, inf, 0, 0, 0, 0, 0};
    std::copy_n(values, 21, points.data());
    for (const float distance : {0.0f, 0.5f}) {
        const UniquePoints unique = unique_points(points.view(), distance);
        EXPECT_EQ(values_of(unique.kept), (std::vector<int32_t>{0, 2, 3, 4, 5}));
        EXPECT_EQ(values_of(unique.unique_of), (std::vector<int32_t>{0, 0, 1, 2, 3, 4, 0}));
    }
}

TEST(GeometryDedupe, ThreadsDoNotMatter) {
    const Array<float, 2> points = random_points(60'000, 8);
    const auto [one, three] = on_threads([&] { return values_of(unique_points(points.view(), 0.006f).unique_of); });
    EXPECT_EQ(one, three);
    EXPECT_LT(*std::max_element(one.begin(), one.end()), 50'000);
}

TEST(GeometryDedupe, ACrowdAtOnePlaceIsQuick) {
    Array<float, 2> points({200'000, 3});
    for (int64_t i = 0; i < 600'000; ++i) points.data()[i] = 1e-4f * Rng(1).uniform(static_cast<uint64_t>(i));
    EXPECT_EQ(unique_points(points.view(), 0.01f).kept.size(0), 1);
}

TEST(GeometryDedupe, CloudsKeepTheirAttributes) {
    Mesh cloud = random_cloud(10);
    std::copy_n(cloud.vertices.positions.data() + 6, 3, cloud.vertices.positions.data() + 21);  // 7 is 2
    cloud.vertices.origin = {1, 2, 3};
    number_parts(cloud);
    const PointCloud unique = geometry::dedupe_points(cloud.vertices);
    EXPECT_EQ(unique.size(), 9);
    EXPECT_EQ(unique.origin, cloud.vertices.origin);
    EXPECT_EQ(find(unique.attributes, "vertex_id")->value(7), 8);
}

TEST(GeometryDedupe, SoupBecomesAMesh) {
    // A sphere with three vertices of its own for every face, as STL files have them.
    const Mesh sphere = geometry::sphere_mesh(1, 3);
    Mesh soup;
    soup.vertices = PointCloud(3 * sphere.faces());
    soup.triangles = Array<int32_t, 2>({sphere.faces(), 3});
    for (int64_t i = 0; i < 3 * sphere.faces(); ++i) {
        std::copy_n(sphere.vertices.positions.data() + 3 * int64_t{sphere.triangles.data()[i]}, 3,
                    soup.vertices.positions.data() + 3 * i);
        soup.triangles.data()[i] = static_cast<int32_t>(i);
    }
    number_parts(soup);
    for (const float distance : {0.0f, 0.01f}) {
        const geometry::MeshPart part = geometry::dedupe_vertices(soup, distance);
        validate(part.mesh);
        EXPECT_EQ(part.mesh.vertices.size(), sphere.vertices.size());
        EXPECT_EQ(part.mesh.faces(), sphere.faces());
        EXPECT_EQ(find(part.mesh.face_attributes, "face_id")->value(77), 77);
        for (int64_t v = 0; v < part.mesh.vertices.size(); ++v)
            EXPECT_EQ(find(part.mesh.vertices.attributes, "vertex_id")->value(v), part.vertices.data()[v]);
        const geometry::MeshEdges edges = geometry::mesh_edges(part.mesh);
        EXPECT_EQ(edges.size(), sphere.faces() / 2 * 3);
        for (int64_t e = 0; e < edges.size(); ++e) ASSERT_EQ(edges.faces_on(e), 2);
    }
}

TEST(GeometryDedupe, RefusesNonsense) {
    const Array<float, 2> points = random_points(3, 1);
    EXPECT_EQ(bad_argument_of([&] { unique_points(points.view(), -1); }), "unique_points: distance -1");
    EXPECT_EQ(bad_argument_of([&] { unique_points(points.view(), NAN); }), "unique_points: distance nan");
    EXPECT_EQ(bad_argument_of([&] {
                  unique_points(View<const float, 2>(points.data(), {4, 2}), 0);
              }),
              "unique_points: points must be [n, 3], got [4, 2]");
}

}  // namespace
}  // namespace stipple::test
