#pragma once
// What the tests of geometry share: every device, meshes of every kind, the folder of data sets.
//
//   class ClosestPoint : public OnDevice {};
//   STIPPLE_ON_EVERY_DEVICE(ClosestPoint);
//   TEST_P(ClosestPoint, FindsTheNearestFace) { const Mesh mesh = upload(wavy_torus(64, 64)); ... }

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "tests/support/data_sets.h"
#include "tests/support/devices.h"

namespace stipple::test {

Mesh make_mesh(const std::vector<float>& positions, const std::vector<int32_t>& triangles);

/// Closed, outward oriented. u, v in [0, 2 pi), r = 0.35 + 0.06 sin 7u cos 5v; about 1.4 wide. 2 * across * along
/// faces.
Mesh wavy_torus(int64_t along, int64_t across);

/// Closed, outward oriented, radius 1: an octahedron of which every face is cut into 4^levels.
Mesh sphere(int levels);

/// [0, 1]^3, closed, outward oriented, 12 faces.
Mesh cube();

/// n triangles of random size and place about the unit cube; one in eight a sliver, one in eight a segment or a point,
/// one in eight the face before it once more.
Mesh soup(int64_t n, uint64_t seed = 1);

/// The mesh with every position times `factor`.
Mesh scaled(const Mesh& mesh, float factor);

/// n uniform points in [low, high)^3, [n, 3]. Deterministic.
Array<float, 2> uniform_points(int64_t n, float low, float high, uint64_t seed = 1);

/// Whether mesh queries on this device are answered by other code than our own hierarchy on the CPU: by CUDA or Embree.
bool has_other_engine(Device device);

}  // namespace stipple::test
