#include "stipple/geometry/mesh_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"

namespace stipple::test {
namespace {

using geometry::check_mesh;
using geometry::MeshCheck;
using Faces = std::vector<std::array<int32_t, 3>>;

Mesh mesh_of_faces(const std::vector<std::array<float, 3>>& points, const Faces& faces) {
    Mesh mesh;
    mesh.vertices = PointCloud(static_cast<int64_t>(points.size()));
    mesh.triangles = Array<int32_t, 2>({static_cast<int64_t>(faces.size()), 3});
    if (!points.empty()) std::memcpy(mesh.vertices.positions.data(), points.data(), points.size() * 12);
    if (!faces.empty()) std::memcpy(mesh.triangles.data(), faces.data(), faces.size() * 12);
    return mesh;
}

/// By definition: maps of edges, the link of every vertex searched through.
MeshCheck naive_check(const Mesh& mesh) {
    const int32_t* t = mesh.triangles.data();
    const int64_t m = mesh.faces();
    MeshCheck check;
    std::map<std::pair<int32_t, int32_t>, std::vector<std::pair<int64_t, bool>>> edges;  // faces, from low to high
    std::set<int32_t> used;
    for (int64_t f = 0; f < m; ++f) {
        for (int i = 0; i < 3; ++i) {
            const int32_t a = t[3 * f + i], b = t[3 * f + (i + 1) % 3];
            edges[{std::min(a, b), std::max(a, b)}].push_back({f, a <= b});
            used.insert(a);
        }
        std::multiset<int32_t> key(t + 3 * f, t + 3 * f + 3);
        int64_t earlier = 0;
        for (int64_t g = 0; g < f; ++g) earlier += key == std::multiset<int32_t>(t + 3 * g, t + 3 * g + 3);
        check.duplicate_faces += earlier > 0;
    }
    std::vector<int64_t> label(static_cast<size_t>(m));
    for (int64_t f = 0; f < m; ++f) label[f] = f;
    for (const auto& [edge, faces] : edges) {
        check.boundary_edges += faces.size() == 1;
        check.nonmanifold_edges += faces.size() > 2;
        check.misoriented_edges += faces.size() == 2 && faces[0].second == faces[1].second;
        for (const auto& [face, forward] : faces) {
            const int64_t from = label[face], to = label[faces[0].first];
            for (int64_t& value : label)
                if (value == from) value = to;
        }
    }
    check.components = static_cast<int64_t>(std::set<int64_t>(label.begin(), label.end()).size());
    for (int32_t v : used) {
        std::map<int32_t, std::vector<int32_t>> link;
        for (int64_t i = 0; i < 3 * m; ++i) {
            if (t[i] != v) continue;
            const int32_t a = t[i / 3 * 3 + (i + 1) % 3], b = t[i / 3 * 3 + (i + 2) % 3];
            link[a].push_back(b);
            link[b].push_back(a);
        }
        std::set<int32_t> reached;
        std::function<void(int32_t)> walk = [&](int32_t u) {
            if (reached.insert(u).second)
                for (int32_t w : link[u]) walk(w);
        };
        walk(link.begin()->first);
        bool one_fan = reached.size() == link.size();
        for (const auto& [u, neighbours] : link) one_fan &= neighbours.size() <= 2;
        check.nonmanifold_vertices += !one_fan;
    }
    check.unreferenced_vertices = mesh.vertices.size() - static_cast<int64_t>(used.size());
    check.euler = static_cast<int64_t>(used.size()) - static_cast<int64_t>(edges.size()) + m;
    return check;
}

void expect_counts(const MeshCheck& check, const MeshCheck& expected) {
    EXPECT_EQ(check.boundary_edges, expected.boundary_edges);
    EXPECT_EQ(check.nonmanifold_edges, expected.nonmanifold_edges);
    EXPECT_EQ(check.misoriented_edges, expected.misoriented_edges);
    EXPECT_EQ(check.nonmanifold_vertices, expected.nonmanifold_vertices);
    EXPECT_EQ(check.duplicate_faces, expected.duplicate_faces);
    EXPECT_EQ(check.unreferenced_vertices, expected.unreferenced_vertices);
    EXPECT_EQ(check.components, expected.components);
    EXPECT_EQ(check.euler, expected.euler);
}

const std::vector<std::array<float, 3>> kFour = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
const Faces kTetrahedron = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {2, 0, 3}};

TEST(MeshCheck, TetrahedronIsWatertight) {
    const Mesh mesh = mesh_of_faces(kFour, kTetrahedron);
    const MeshCheck check = check_mesh(mesh);
    expect_counts(check, naive_check(mesh));
    EXPECT_TRUE(check.is_watertight(mesh));
    EXPECT_EQ(check.components, 1);
    EXPECT_EQ(check.euler, 2);
    EXPECT_NEAR(check.volume, 1.0 / 6, 1e-15);
    EXPECT_NEAR(check.area, 1.5 + std::sqrt(3.0) / 2, 1e-15);
}

TEST(MeshCheck, FarFromTheOriginTheVolumeKeepsItsDigits) {
    auto points = kFour;
    for (auto& p : points) p = {p[0] + 65536, p[1] - 131072, p[2] + 32768};
    EXPECT_NEAR(check_mesh(mesh_of_faces(points, kTetrahedron)).volume, 1.0 / 6, 1e-15);
}

TEST(MeshCheck, NamesEachFault) {
    const auto with = [](const std::function<void(std::vector<std::array<float, 3>>&, Faces&)>& change) {
        auto points = kFour;
        Faces faces = kTetrahedron;
        change(points, faces);
        const Mesh mesh = mesh_of_faces(points, faces);
        const MeshCheck check = check_mesh(mesh);
        expect_counts(check, naive_check(mesh));
        return check;
    };
    MeshCheck check = with([](auto&, auto& faces) { faces.pop_back(); });
    EXPECT_EQ(check.boundary_edges, 3);
    EXPECT_TRUE(check.is_manifold() && check.is_oriented());
    check = with([](auto&, auto& faces) { std::swap(faces[3][0], faces[3][1]); });
    EXPECT_EQ(check.misoriented_edges, 3);
    EXPECT_TRUE(check.is_closed() && check.is_manifold());
    check = with([](auto&, auto& faces) { faces.push_back(faces[1]); });
    EXPECT_EQ(check.duplicate_faces, 1);
    EXPECT_EQ(check.nonmanifold_edges, 3);
    EXPECT_EQ(check.nonmanifold_vertices, 3);
    check = with([](auto&, auto& faces) { faces.push_back({1, 1, 2}); });
    EXPECT_EQ(check.degenerate_faces, 1);
    EXPECT_EQ(check.boundary_edges, 1);  // from 1 to itself
    check = with([](auto& points, auto&) { points[3] = {2, 0, 0}; });
    EXPECT_EQ(check.degenerate_faces, 1);
    EXPECT_TRUE(check.is_closed());
    check = with([](auto& points, auto&) { points.push_back({NAN, 0, 0}); });
    EXPECT_EQ(check.unreferenced_vertices, 1);
    // Two tetrahedra that share a vertex, and two that share an edge.
    check = with([](auto& points, auto& faces) {
        points.insert(points.end(), {{2, 2, 2}, {3, 2, 2}, {2, 3, 2}});
        faces.insert(faces.end(), {{3, 5, 4}, {3, 4, 6}, {4, 5, 6}, {5, 3, 6}});
    });
    EXPECT_EQ(check.nonmanifold_vertices, 1);
    EXPECT_EQ(check.nonmanifold_edges, 0);
    EXPECT_EQ(check.components, 2);
    check = with([](auto& points, auto& faces) {
        points.insert(points.end(), {{2, 2, 2}, {3, 2, 2}});
        faces.insert(faces.end(), {{2, 4, 3}, {2, 3, 5}, {3, 4, 5}, {4, 2, 5}});
    });
    EXPECT_EQ(check.nonmanifold_edges, 1);
    EXPECT_EQ(check.components, 1);
}

TEST(MeshCheck, NothingIsNotWatertight) {
    const Mesh empty = mesh_of_faces({}, {});
    expect_counts(check_mesh(empty), {});
    EXPECT_FALSE(check_mesh(empty).is_watertight(empty));
    const Mesh points = mesh_of_faces(kFour, {});
    EXPECT_EQ(check_mesh(points).unreferenced_vertices, 4);
    EXPECT_FALSE(check_mesh(points).is_watertight(points));
}

TEST(MeshCheck, SoupsOfFewVerticesAgreeWithTheDefinition) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
        const Rng rng(seed);
        const int32_t n = 3 + static_cast<int32_t>(rng.below(0, 12));
        Faces faces(1 + rng.below(1, 24));
        for (size_t i = 0; i < 3 * faces.size(); ++i)
            faces[i / 3][i % 3] = static_cast<int32_t>(rng.below(2 + i, static_cast<uint32_t>(n)));
        const Mesh mesh = mesh_of_faces(std::vector<std::array<float, 3>>(static_cast<size_t>(n)), faces);
        expect_counts(check_mesh(mesh), naive_check(mesh));
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

TEST(MeshCheck, ThreadsDoNotMatter) {
    Faces faces;
    std::vector<std::array<float, 3>> points;
    const int32_t n = 150;  // a torus of n x n quads: many chunks
    for (int32_t i = 0; i < n * n; ++i) {
        const double u = 6.283185307179586 * (i % n) / n, v = 6.283185307179586 * (i / n) / n;
        points.push_back({static_cast<float>((1 + 0.4 * std::cos(v)) * std::cos(u)),
                          static_cast<float>((1 + 0.4 * std::cos(v)) * std::sin(u)),
                          static_cast<float>(0.4 * std::sin(v))});
        const int32_t right = i / n * n + (i + 1) % n, up = (i + n) % (n * n), across = (right + n) % (n * n);
        faces.insert(faces.end(), {{i, right, across}, {i, across, up}});
    }
    const Mesh mesh = mesh_of_faces(points, faces);
    const int before = threads();
    MeshCheck checks[2];
    for (int i = 0; i < 2; ++i) {
        set_threads(i == 0 ? 1 : 3);
        checks[i] = check_mesh(mesh);
    }
    set_threads(before);
    expect_counts(checks[0], checks[1]);
    EXPECT_EQ(checks[0].area, checks[1].area);
    EXPECT_EQ(checks[0].volume, checks[1].volume);
    EXPECT_TRUE(checks[0].is_watertight(mesh));
    EXPECT_EQ(checks[0].euler, 0);
    EXPECT_EQ(checks[0].components, 1);
    EXPECT_NEAR(checks[0].volume, 2 * M_PI * M_PI * 0.4 * 0.4, 0.005);
}

TEST(MeshCheck, MeshesOnOtherDevicesAndBadOnesAreRefused) {
    const Mesh mesh = mesh_of_faces(kFour, kTetrahedron);
    const Device cuda{DeviceType::cuda, 0};
    EXPECT_THROW(check_mesh({View<const float, 2>(mesh.vertices.positions.data(), {4, 3}, cuda),
                             View<const int32_t, 2>(mesh.triangles.data(), {4, 3}, cuda)}),
                 Error);
    EXPECT_THROW(check_mesh(mesh_of_faces({{NAN, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {{0, 1, 2}})), Error);
    EXPECT_THROW(check_mesh(mesh_of_faces(kFour, {{0, 1, 4}})), Error);
}

}  // namespace
}  // namespace stipple::test
