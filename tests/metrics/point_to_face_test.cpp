#include "stipple/metrics/point_to_face.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "stipple/core/parallel.h"
#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::FaceDistances;
using metrics::IndexedMesh;

class MetricsPointToFace : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(MetricsPointToFace);

TEST_P(MetricsPointToFace, IsTheLeastOverAllFacesInFloat64) {
    Mesh mesh = sphere_mesh(3);
    for (const PointCloud& cloud : {cube_cloud(500, 3), sphere_cloud(500, 4)}) {  // far from it, and nearly on it
        const IndexedMesh indexed(mesh, GetParam());
        const FaceDistances found = metrics::point_to_face(indexed, points_of(cloud));
        const std::vector<Double3> points = world_of(cloud);
        for (size_t i = 0; i < points.size(); ++i) {
            const double least = brute_to_mesh(points[i], mesh);
            EXPECT_NEAR(found.distance.data()[i], least, 1e-6 * least + 1e-12) << i;
            const double* q = found.nearest.data() + 3 * i;
            EXPECT_NEAR(std::hypot(points[i][0] - q[0], points[i][1] - q[1], points[i][2] - q[2]), least,
                        1e-6 * least + 1e-12);
        }
    }
}

TEST_P(MetricsPointToFace, OfPointsOnTheSurfaceMeansSomething) {
    // 1e-7 above a square: float32 distances would be noise for coordinates of this size.
    const Mesh mesh = square_mesh(7);
    PointCloud cloud = cube_cloud(200, 5);
    for (int64_t i = 0; i < cloud.size(); ++i) cloud.positions.data()[3 * i + 2] = 1e-7f;
    const FaceDistances found = metrics::point_to_face(IndexedMesh(mesh, GetParam()), points_of(cloud));
    for (const double distance : found.distance.span()) EXPECT_NEAR(distance, 1e-7, 1e-13);
}

TEST_P(MetricsPointToFace, DegenerateFacesAndNonFinitePoints) {
    Mesh mesh = sphere_mesh(0);
    for (int k = 0; k < 3; ++k) mesh.triangles.data()[k] = 0;  // a point
    mesh.triangles.data()[3] = mesh.triangles.data()[4];       // a segment
    const PointCloud cloud = cloud_of({3, 0.5f, 0, NAN, 0, 0, 0.2f, 0.1f, 0.9f, 0, 0, INFINITY});
    const FaceDistances found = metrics::point_to_face(IndexedMesh(mesh, GetParam()), points_of(cloud));
    EXPECT_NEAR(found.distance.data()[0], brute_to_mesh({3, 0.5, 0}, mesh), 1e-9);
    EXPECT_NEAR(found.distance.data()[2], brute_to_mesh(world_of(cloud)[2], mesh), 1e-9);
    for (const int i : {1, 3}) {
        EXPECT_EQ(found.distance.data()[i], INFINITY);
        EXPECT_EQ(found.face.data()[i], -1);
        EXPECT_TRUE(std::isnan(found.nearest.data()[3 * i]));
    }
}

TEST(MetricsPointToFaceErrors, NameWhatIsWrong) {
    Mesh mesh = square_mesh(1);
    EXPECT_DOUBLE_EQ(IndexedMesh(mesh).area(), 4);
    mesh.triangles.data()[0] = 99;
    EXPECT_EQ(bad_argument_of([&] { IndexedMesh indexed(mesh); }), "IndexedMesh: face 0 has vertex 99 of 4");
    mesh.triangles = Array<int32_t, 2>({0, 3});
    EXPECT_EQ(bad_argument_of([&] { IndexedMesh indexed(mesh); }), "IndexedMesh: the mesh has no faces");
    const Mesh square = square_mesh(1);
    EXPECT_EQ(bad_argument_of([&] { metrics::face_to_point(IndexedMesh(square), points_of(cube_cloud(3, 1)), 0, 1); }),
              "face_to_point: 0 samples");
}

TEST(MetricsFaceToPoint, IsTheDistanceOfSamplesOfTheMesh) {
    // One point above the middle of a square of side 2: mean distance is that of the integral.
    const Mesh mesh = square_mesh(3);
    const IndexedMesh indexed(mesh);
    const metrics::Points one = points_of(cloud_of({0, 0, 0}));
    const metrics::Distances found = metrics::face_to_point(indexed, one, 200000, 1);
    const double mean = (std::sqrt(2.0) + std::log(1 + std::sqrt(2.0))) / 3;  // of |x| over the square
    EXPECT_EQ(found.count, 200000);
    EXPECT_NEAR(found.mean, mean, 0.003);
    EXPECT_NEAR(found.mean_squared, 2 / 3.0, 0.003);
    EXPECT_LE(found.max, std::sqrt(2.0) + 1e-6);
    EXPECT_EQ(metrics::face_to_point(indexed, one, 1000, 7).mean, metrics::face_to_point(indexed, one, 1000, 7).mean);
    EXPECT_NE(metrics::face_to_point(indexed, one, 1000, 7).mean, metrics::face_to_point(indexed, one, 1000, 8).mean);
    EXPECT_EQ(metrics::face_to_point(indexed, points_of(PointCloud(0)), 10, 1).count, 0);
}

TEST(MetricsPointToFaceThreads, DoNotMatter) {
    const Mesh mesh = sphere_mesh(4);
    const IndexedMesh indexed(mesh);
    const metrics::Points points = points_of(cube_cloud(20000, 3));
    const int before = threads();
    set_threads(1);
    const FaceDistances one = metrics::point_to_face(indexed, points);
    set_threads(3);
    const FaceDistances three = metrics::point_to_face(indexed, points);
    set_threads(before);
    EXPECT_EQ(0, std::memcmp(one.distance.data(), three.distance.data(), sizeof(double) * points.size()));
}

}  // namespace
}  // namespace stipple::test
