#pragma once
// Meshes and small helpers that the tests of mesh functions share.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/core/point_cloud.h"
#include "stipple/geometry/primitives.h"
#include "tests/support/devices.h"

namespace stipple::test {

inline Mesh mesh_of(const std::vector<std::array<float, 3>>& places, const std::vector<std::array<int32_t, 3>>& faces) {
    Mesh mesh;
    mesh.vertices = PointCloud(static_cast<int64_t>(places.size()));
    mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(faces.size()), 3});
    for (size_t i = 0; i < places.size(); ++i)
        std::copy(places[i].begin(), places[i].end(), mesh.vertices.positions.data() + 3 * i);
    for (size_t i = 0; i < faces.size(); ++i)
        std::copy(faces[i].begin(), faces[i].end(), mesh.triangles.data() + 3 * i);
    return mesh;
}

/// A torus with waves: 2 n^2 faces of many sizes, closed.
inline Mesh wavy_torus(int64_t n) {
    Mesh mesh = geometry::torus_mesh(1, 0.35, n, n);
    for (int64_t i = 0; i < n * n; ++i) {
        const double u = 2 * std::numbers::pi * static_cast<double>(i / n) / static_cast<double>(n);
        const double v = 2 * std::numbers::pi * static_cast<double>(i % n) / static_cast<double>(n);
        const double r = 0.35 + 0.06 * std::sin(7 * u) * std::cos(5 * v);
        float* p = mesh.vertices.positions.data() + 3 * i;
        p[0] = static_cast<float>((1 + r * std::cos(v)) * std::cos(u));
        p[1] = static_cast<float>((1 + r * std::cos(v)) * std::sin(u));
        p[2] = static_cast<float>(r * std::sin(v) + 0.1 * std::sin(3 * u));
    }
    return mesh;
}

/// Adds an attribute of consecutive numbers to the vertices and one to the faces: what becomes of them shows where
/// vertices and faces went.
inline void number_parts(Mesh& mesh) {
    Attribute of_vertex("vertex_id", DType::i32, mesh.vertices.size(), 1);
    Attribute of_face("face_id", DType::i64, mesh.faces(), 1);
    for (int64_t i = 0; i < mesh.vertices.size(); ++i) of_vertex.as<int32_t>()(i, 0) = static_cast<int32_t>(i);
    for (int64_t i = 0; i < mesh.faces(); ++i) of_face.as<int64_t>()(i, 0) = i;
    mesh.vertices.attributes.push_back(std::move(of_vertex));
    mesh.face_attributes.push_back(std::move(of_face));
}

template <class T, int Rank>
std::vector<T> values_of(const Array<T, Rank>& array) {
    return {array.span().begin(), array.span().end()};
}

/// What f gives with 1 thread and with 3.
template <class F>
auto on_threads(const F& f) {
    const int before = threads();
    set_threads(1);
    auto one = f();
    set_threads(3);
    auto three = f();
    set_threads(before);
    return std::pair{std::move(one), std::move(three)};
}

}  // namespace stipple::test
