#include "stipple/metrics/uniformity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/sample_surface.h"
#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

using metrics::DiskOptions;
using metrics::IndexedMesh;

constexpr double kPi = 3.14159265358979323846;

/// A lattice of n x n points over the square of side 2 in z = 0.
PointCloud lattice(int n) {
    PointCloud cloud(int64_t{n} * n);
    for (int64_t i = 0; i < cloud.size(); ++i) {
        cloud.positions.data()[3 * i] = -1 + 2 * (static_cast<float>(i % n) + 0.5f) / static_cast<float>(n);
        cloud.positions.data()[3 * i + 1] = -1 + 2 * (static_cast<float>(i / n) + 0.5f) / static_cast<float>(n);
        cloud.positions.data()[3 * i + 2] = 0;
    }
    return cloud;
}

/// The points of the square within a radius of a middle.
std::vector<Double3> brute_disk(const std::vector<Double3>& points, const float* middle, double radius) {
    std::vector<Double3> found;
    for (const Double3& p : points)
        if (std::hypot(p[0] - middle[0], p[1] - middle[1], p[2] - middle[2]) <= radius) found.push_back(p);
    return found;
}

TEST(MetricsUniformity, IsTheFormulaDiskByDisk) {
    const Mesh mesh = square_mesh(9);
    const IndexedMesh indexed(mesh);
    PointCloud cloud = cube_cloud(900, 5);
    for (int64_t i = 0; i < cloud.size(); ++i) cloud.positions.data()[3 * i + 2] = 0;
    const std::vector<Double3> points = world_of(cloud);
    DiskOptions options;
    options.disks = 150;
    options.shares = {0.004, 0.02};
    options.seed = 11;
    const geometry::SurfaceSamples middles = geometry::sample_surface(mesh, options.disks, options.seed);
    const auto found = metrics::disk_uniformity(indexed, points_of(cloud), options);
    const auto nuc = metrics::normalised_uniformity(indexed, points_of(cloud), options);
    for (size_t s = 0; s < 2; ++s) {
        const double radius = std::sqrt(options.shares[s] * 4 / kPi), expected = options.shares[s] * 900;
        EXPECT_NEAR(found[s].radius, radius, 1e-12);
        double sum = 0, ratios = 0, squares = 0;
        int64_t counted = 0;
        for (int64_t disk = 0; disk < options.disks; ++disk) {
            const std::vector<Double3> members = brute_disk(points, middles.points.data() + 3 * disk, radius);
            const double n = static_cast<double>(members.size());
            ratios += n / expected;
            squares += n / expected * n / expected;
            if (members.size() < 5) continue;
            const double ideal = std::sqrt(2 * kPi * radius * radius / n / 1.732);
            double clutter = 0;
            for (size_t i = 0; i < members.size(); ++i) {
                double least = INFINITY;
                for (size_t j = 0; j < members.size(); ++j)
                    if (i != j)
                        least =
                            std::min(least, std::hypot(members[i][0] - members[j][0], members[i][1] - members[j][1]));
                clutter += (least - ideal) * (least - ideal) / ideal / n;
            }
            sum += (n - expected) * (n - expected) / expected * clutter;
            ++counted;
        }
        ASSERT_GT(counted, 0);
        EXPECT_EQ(found[s].skipped, options.disks - counted);
        EXPECT_NEAR(found[s].value, sum / static_cast<double>(counted), 1e-9 * found[s].value);
        const double mean = ratios / 150;
        EXPECT_NEAR(nuc[s].mean, mean, 1e-12);
        EXPECT_NEAR(nuc[s].value, std::sqrt(squares / 150 - mean * mean), 1e-9);
    }
}

TEST(MetricsUniformity, EvenPointsAreBetterThanRandomOnes) {
    const Mesh mesh = sphere_mesh(4);
    const IndexedMesh indexed(mesh);
    PointCloud even, random;
    even.positions = geometry::sample_surface_poisson(mesh, 4096, 3).points;
    random.positions = geometry::sample_surface(mesh, 4096, 3).points;
    const auto good = metrics::disk_uniformity(indexed, points_of(even)),
               bad = metrics::disk_uniformity(indexed, points_of(random));
    const auto good_nuc = metrics::normalised_uniformity(indexed, points_of(even)),
               bad_nuc = metrics::normalised_uniformity(indexed, points_of(random));
    ASSERT_EQ(good.size(), 5u);
    ASSERT_EQ(good_nuc.size(), 6u);
    for (size_t i = 0; i < good.size(); ++i) EXPECT_LT(good[i].value, 0.2 * bad[i].value);
    for (size_t i = 0; i < good_nuc.size(); ++i) {
        EXPECT_LT(good_nuc[i].value, 0.5 * bad_nuc[i].value);
        EXPECT_NEAR(bad_nuc[i].mean, 1, 0.03) << "a ball holds what a disk of the same area would";
        // Counts of independent points are binomial.
        EXPECT_NEAR(bad_nuc[i].value, std::sqrt(1 / (4096 * bad_nuc[i].share)), 0.06 * bad_nuc[i].value);
    }
}

TEST(MetricsUniformity, TheOtherSideOfASheetIsNotInTheDisk) {
    // Two squares 0.001 apart that look away from each other, with points on both.
    Mesh sheet = square_mesh(6), below = square_mesh(6);
    const int64_t n = sheet.vertices.size(), m = sheet.faces();
    Mesh both;
    both.vertices = PointCloud(2 * n);
    both.triangles = Array<int32_t, 2>({2 * m, 3});
    std::copy_n(sheet.vertices.positions.data(), 3 * n, both.vertices.positions.data());
    std::copy_n(below.vertices.positions.data(), 3 * n, both.vertices.positions.data() + 3 * n);
    for (int64_t i = n; i < 2 * n; ++i) both.vertices.positions.data()[3 * i + 2] = -0.001f;
    for (int64_t f = 0; f < m; ++f)
        for (int k = 0; k < 3; ++k) {
            both.triangles.data()[3 * f + k] = sheet.triangles.data()[3 * f + k];
            both.triangles.data()[3 * (m + f) + k] = static_cast<int32_t>(n) + below.triangles.data()[3 * f + 2 - k];
        }
    const PointCloud top = lattice(40);
    PointCloud cloud(2 * top.size());
    std::copy_n(top.positions.data(), 3 * top.size(), cloud.positions.data());
    std::copy_n(top.positions.data(), 3 * top.size(), cloud.positions.data() + 3 * top.size());
    for (int64_t i = top.size(); i < cloud.size(); ++i) cloud.positions.data()[3 * i + 2] = -0.001f;
    const auto nuc = metrics::normalised_uniformity(IndexedMesh(both), points_of(cloud));
    // Half of it would be two sheets in each disk: 2. Borders make it a little less than 1.
    for (const metrics::Nuc& one : nuc) EXPECT_NEAR(one.mean, 0.93, 0.07);
}

TEST(MetricsUniformity, ThreadsDoNotMatterAndSeedsDo) {
    const Mesh mesh = sphere_mesh(3);
    const IndexedMesh indexed(mesh);
    const metrics::Points points = points_of(sphere_cloud(3000, 1));
    const int before = threads();
    set_threads(1);
    const double one = metrics::disk_uniformity(indexed, points)[2].value;
    set_threads(3);
    EXPECT_EQ(metrics::disk_uniformity(indexed, points)[2].value, one);
    set_threads(before);
    DiskOptions other;
    other.seed = 2;
    EXPECT_NE(metrics::disk_uniformity(indexed, points, other)[2].value, one);
}

TEST(MetricsUniformity, FewPointsAndErrors) {
    const Mesh mesh = square_mesh(2);
    const IndexedMesh indexed(mesh);
    const auto few = metrics::disk_uniformity(indexed, points_of(cube_cloud(10, 1)));
    EXPECT_TRUE(std::isnan(few[0].value));
    EXPECT_EQ(few[0].skipped, 1000);
    const metrics::Points points = points_of(cube_cloud(10, 1));
    DiskOptions options;
    options.shares = {0.5, 1.5};
    EXPECT_EQ(bad_argument_of([&] { metrics::disk_uniformity(indexed, points, options); }),
              "disk_uniformity: a disk of 1.5 of the area");
    options.disks = 0;
    EXPECT_EQ(bad_argument_of([&] { metrics::normalised_uniformity(indexed, points, options); }),
              "normalised_uniformity: 0 disks of 2 sizes");
    EXPECT_EQ(bad_argument_of([&] {
                  metrics::disk_uniformity(indexed, points_of(cloud_of({NAN, 0, 0})));
              }),
              "disk_uniformity: no finite points");
    Mesh flat = square_mesh(1);
    for (int64_t i = 0; i < flat.triangles.elements(); ++i) flat.triangles.data()[i] = 0;
    EXPECT_EQ(bad_argument_of([&] { metrics::disk_uniformity(IndexedMesh(flat), points); }),
              "disk_uniformity: the mesh has no area");
}

}  // namespace
}  // namespace stipple::test
