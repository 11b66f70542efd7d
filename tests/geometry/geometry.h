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

namespace stipple::test {

/// The CPU, and the first GPU where there is one.
std::vector<Device> test_devices();

class OnDevice : public testing::TestWithParam<Device> {
protected:
    Device device() const { return GetParam(); }

    template <class T, int Rank>
    Array<T, Rank> upload(const Array<T, Rank>& host) const {
        return host.to(device());
    }
    /// Positions and triangles only.
    Mesh upload(const Mesh& host) const;
};

/// Blocks until the device has finished what was launched before.
template <class T, int Rank>
Array<T, Rank> download(const Array<T, Rank>& array) {
    return array.to(Device{});
}

#define STIPPLE_ON_EVERY_DEVICE(suite)                                                                                \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::stipple::test::test_devices()), [](const auto& parameter) { \
        return std::string(parameter.param.type == DeviceType::cpu ? "cpu" : "cuda");                                 \
    })

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

/// A file of the data sets, e.g. data_file("upsample_dev/..."): the folder is $STIPPLE_DATA or ../shared/data beside
/// the sources. Nothing where it is not there: a test that needs it says so and is skipped.
std::optional<std::string> data_file(const std::string& relative);

/// The message of the Error{bad_argument} that f throws; a test failure when it throws none or another.
std::string bad_argument_of(const std::function<void()>& f);

/// Runs f with 1 thread and with 3, and expects the same bytes in what it returns.
void expect_same_on_threads(const std::function<std::vector<Array<float, 2>>()>& f);

}  // namespace stipple::test
