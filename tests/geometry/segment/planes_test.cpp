#include "stipple/geometry/planes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"

namespace stipple::test {
namespace {

using geometry::PlaneOptions;
using geometry::PlaneSegments;
using geometry::Vector3;

/// Points on patches of planes with noise, and others anywhere; `truth` tells which patch, -1 anywhere.
struct Scene {
    PointCloud cloud;
    std::vector<int> truth;
    std::vector<Vector3> normals;
};

Scene planes_scene(int64_t n, double noise, double outliers) {
    const Rng rng(17);
    Scene scene;
    scene.normals = {{0, 0, 1}, {0.6, 0, 0.8}, {0, 1, 0}};
    const Vector3 along[3][2] = {{{1, 0, 0}, {0, 1, 0}}, {{0.8, 0, -0.6}, {0, 1, 0}}, {{1, 0, 0}, {0, 0, 1}}};
    const Vector3 corner[3] = {{0, 0, 0}, {0, 0, 2}, {0, 3, 0}};
    scene.cloud = PointCloud(n);
    scene.cloud.origin = {500000, 4000000, 50};
    for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<uint64_t>(16 * i);
        const double kind = rng.uniform(at);
        const int patch = kind < outliers ? -1 : kind < 0.5 + 0.5 * outliers ? 0 : kind < 0.8 + 0.2 * outliers ? 1 : 2;
        scene.truth.push_back(patch);
        for (int axis = 0; axis < 3; ++axis) {
            double x = 5 * rng.uniform(at + 4 + static_cast<uint64_t>(axis)) - 1;
            if (patch >= 0)
                x = corner[patch][axis] + 3 * rng.uniform(at + 1) * along[patch][0][axis] +
                    3 * rng.uniform(at + 2) * along[patch][1][axis] +
                    noise * rng.normal(at + 8) * scene.normals[patch][axis];
            scene.cloud.positions.data()[3 * i + axis] = static_cast<float>(x);
        }
    }
    return scene;
}

PlaneOptions with_distance(double distance, int64_t min_points = 200) {
    PlaneOptions options;
    options.distance = distance;
    options.min_points = min_points;
    return options;
}

TEST(GeometryPlanes, FindsPlanesAmongOutliers) {
    const Scene scene = planes_scene(20000, 0.01, 0.3);
    const PlaneSegments found = geometry::find_planes(scene.cloud, with_distance(0.03, 1500));
    ASSERT_EQ(found.planes.size(), 3u);
    int64_t right = 0, on_planes = 0;
    for (int64_t i = 0; i < scene.cloud.size(); ++i) {
        if (scene.truth[i] < 0) continue;
        ++on_planes;
        right += found.labels.data()[i] == scene.truth[i];
    }
    EXPECT_GT(static_cast<double>(right) / static_cast<double>(on_planes), 0.97);
    for (int k = 0; k < 3; ++k) {
        double cosine = 0;
        for (int axis = 0; axis < 3; ++axis) cosine += found.planes[k].normal[axis] * scene.normals[k][axis];
        EXPECT_GT(std::abs(cosine), 0.99995) << "plane " << k;
        EXPECT_NEAR(found.planes[k].rms, 0.01, 0.003);
    }
}

TEST(GeometryPlanes, LabelsAreWhatTheEquationsSay) {
    const Scene scene = planes_scene(5000, 0.02, 0.2);
    const PlaneSegments found = geometry::find_planes(scene.cloud, with_distance(0.05));
    std::vector<int64_t> points(found.planes.size(), 0);
    for (int64_t i = 0; i < scene.cloud.size(); ++i) {
        int expected = -1;
        bool is_clear = true;  // not at the limit, where rounding decides
        for (size_t k = 0; k < found.planes.size() && expected < 0; ++k) {
            long double sum = found.planes[k].offset;
            for (int axis = 0; axis < 3; ++axis)
                sum += static_cast<long double>(found.planes[k].normal[axis]) * scene.cloud.world(i, axis);
            is_clear = is_clear && std::abs(std::abs(sum) - 0.05L) > 1e-8L;
            if (std::abs(sum) <= 0.05L) expected = static_cast<int>(k);
        }
        if (is_clear) {
            ASSERT_EQ(found.labels.data()[i], expected) << i;
        }
        if (found.labels.data()[i] >= 0) ++points[static_cast<size_t>(found.labels.data()[i])];
    }
    for (size_t k = 0; k < points.size(); ++k) {
        EXPECT_EQ(found.planes[k].points, points[k]);
        EXPECT_GE(points[k], 200);
    }
}

/// No plane through three points of the cloud has more: all of them are tried.
TEST(GeometryPlanes, FirstPlaneHasAsManyAsAnyThroughThreePoints) {
    for (const int64_t n : {3, 4, 20, 60}) {
        const Scene scene = planes_scene(n, 0.01, 0.4);
        const PlaneSegments found = geometry::find_planes(scene.cloud, with_distance(0.03, 3));
        const float* p = scene.cloud.positions.data();
        int64_t most = 0;
        for (int64_t a = 0; a < n; ++a)
            for (int64_t b = a + 1; b < n; ++b)
                for (int64_t c = b + 1; c < n; ++c) {
                    double u[3], v[3], normal[3];
                    for (int k = 0; k < 3; ++k) u[k] = p[3 * b + k] - p[3 * a + k], v[k] = p[3 * c + k] - p[3 * a + k];
                    for (int k = 0; k < 3; ++k)
                        normal[k] = u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3];
                    const double size = std::hypot(normal[0], normal[1], normal[2]);
                    int64_t count = 0;
                    for (int64_t i = 0; i < n; ++i) {
                        double distance = 0;
                        for (int k = 0; k < 3; ++k) distance += normal[k] * (double{p[3 * i + k]} - p[3 * a + k]);
                        count += std::abs(distance) <= 0.03 * size;
                    }
                    most = std::max(most, count);
                }
        ASSERT_FALSE(found.planes.empty()) << n;
        EXPECT_GE(found.planes[0].points, most - n / 30) << n;
    }
}

TEST(GeometryPlanes, ThreadsDoNotMatterAndSeedsDo) {
    const Scene scene = planes_scene(60000, 0.01, 0.3);
    set_threads(1);
    const PlaneSegments one = geometry::find_planes(scene.cloud, with_distance(0.02, 3000));
    set_threads(3);
    const PlaneSegments three = geometry::find_planes(scene.cloud, with_distance(0.02, 3000));
    set_threads(0);
    ASSERT_EQ(one.planes.size(), three.planes.size());
    for (size_t i = 0; i < one.planes.size(); ++i) {
        EXPECT_EQ(one.planes[i].normal, three.planes[i].normal);
        EXPECT_EQ(one.planes[i].offset, three.planes[i].offset);
    }
    EXPECT_TRUE(std::equal(one.labels.span().begin(), one.labels.span().end(), three.labels.span().begin()));
}

TEST(GeometryPlanes, LittleOrNothingToFind) {
    EXPECT_TRUE(geometry::find_planes(PointCloud(0), with_distance(1, 3)).planes.empty());
    PointCloud same(50);
    std::fill_n(same.positions.data(), 150, 2.0f);
    EXPECT_TRUE(geometry::find_planes(same, with_distance(1, 3)).planes.empty());
    PointCloud line(50);
    for (int64_t i = 0; i < 150; ++i) line.positions.data()[i] = static_cast<float>(i / 3);
    EXPECT_TRUE(geometry::find_planes(line, with_distance(1, 3)).planes.empty());
    Scene scene = planes_scene(2000, 0, 0);
    for (int64_t i = 0; i < 3000; i += 3) scene.cloud.positions.data()[i] = NAN;
    const PlaneSegments found = geometry::find_planes(scene.cloud, with_distance(0.01, 100));
    for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(found.labels.data()[i], -1);
    EXPECT_EQ(found.planes.size(), 3u);
    PlaneOptions one = with_distance(0.01, 100);
    one.count = 1;
    EXPECT_EQ(geometry::find_planes(scene.cloud, one).planes.size(), 1u);
    for (const double bad : {0.0, -1.0, double(NAN)})
        EXPECT_THROW(geometry::find_planes(scene.cloud, with_distance(bad)), Error);
    EXPECT_THROW(geometry::find_planes(scene.cloud, with_distance(1, 2)), Error);
}

}  // namespace
}  // namespace stipple::test
