#pragma once
// What the tests of metrics share: every device, shapes, data, and the plainest possible oracles in float64.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/metrics/nearest.h"
#include "tests/support/data_sets.h"
#include "tests/support/devices.h"

namespace stipple::test {

PointCloud cloud_of(std::initializer_list<float> values);

/// n random points in a cube of side 1 about 0, and on a sphere of radius 1.
PointCloud cube_cloud(int64_t n, uint64_t seed);
PointCloud sphere_cloud(int64_t n, uint64_t seed);

/// A sphere of radius 1 of 8 * 4^depth faces; a square of side 2 in z = 0 of 2 n^2 faces.
Mesh sphere_mesh(int depth);
Mesh square_mesh(int n);

metrics::Points points_of(const PointCloud& cloud);

using Double3 = std::array<double, 3>;

/// The points of a file or cloud as they are in the world, or normalised by their own mean and radius.
std::vector<Double3> world_of(const PointCloud& cloud);
std::vector<Double3> brute_unit_sphere(std::vector<Double3> points);

/// Squared distance to the nearest point of b, for every point of a: all pairs.
std::vector<double> brute_nearest(const std::vector<Double3>& a, const std::vector<Double3>& b);
double brute_mean(const std::vector<double>& values);
double brute_max(const std::vector<double>& values);

/// Distance of a point to a mesh: all faces, by Ericson's regions.
double brute_to_mesh(const Double3& p, const Mesh& mesh);

}  // namespace stipple::test
