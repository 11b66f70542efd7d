#include "stipple/geometry/components.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "stipple/core/rng.h"
#include "stipple/geometry/mesh_edges.h"
#include "tests/geometry/mesh_shapes.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using geometry::connected_components;
using geometry::Connection;

TEST(GeometryMeshEdges, OfRandomMeshes) {
    for (const int64_t n : {0, 3, 30, 999}) {
        const Mesh mesh = random_mesh(n, 4);  // with vertices twice in a face, and edges of many faces
        std::map<std::array<int32_t, 2>, std::vector<int64_t>> expected;
        for (int64_t h = 0; h < 3 * mesh.faces(); ++h) {
            const int32_t a = mesh.triangles.data()[h], b = mesh.triangles.data()[h / 3 * 3 + (h + 1) % 3];
            if (a != b) expected[{std::min(a, b), std::max(a, b)}].push_back(h);
        }
        const auto [edges, on_three] = on_threads([&] { return geometry::mesh_edges(mesh); });
        EXPECT_EQ(edges.half_edges, on_three.half_edges);
        ASSERT_EQ(edges.size(), static_cast<int64_t>(expected.size()));
        int64_t e = 0;
        for (const auto& [ends, half_edges] : expected) {
            EXPECT_EQ(edges.vertices[e], ends);
            EXPECT_EQ(std::vector<int64_t>(edges.half_edges.begin() + edges.offsets[e],
                                           edges.half_edges.begin() + edges.offsets[e + 1]),
                      half_edges);
            ++e;
        }
        const geometry::VertexAdjacency adjacency = geometry::vertex_adjacency(mesh);
        std::vector<std::set<int32_t>> around(static_cast<size_t>(n));
        for (const auto& [ends, half_edges] : expected)
            around[ends[0]].insert(ends[1]), around[ends[1]].insert(ends[0]);
        for (int64_t v = 0; v < n; ++v)
            EXPECT_EQ(std::vector<int32_t>(adjacency.neighbours.begin() + adjacency.offsets[v],
                                           adjacency.neighbours.begin() + adjacency.offsets[v + 1]),
                      std::vector<int32_t>(around[v].begin(), around[v].end()));
    }
}

TEST(GeometryMeshEdges, OfAClosedMeshHaveTwoFacesEach) {
    const Mesh mesh = wavy_torus(50);
    const geometry::MeshEdges edges = geometry::mesh_edges(mesh);
    EXPECT_EQ(mesh.vertices.size() - edges.size() + mesh.faces(), 0);  // Euler
    for (int64_t e = 0; e < edges.size(); ++e) ASSERT_EQ(edges.faces_on(e), 2);
}

/// Two triangles that share an edge, one that shares a vertex with them, one apart, a loose vertex.
Mesh bow_tie() {
    return mesh_of(
        {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}, {2, 1, 0}, {2, 2, 0}, {9, 0, 0}, {9, 1, 0}, {9, 0, 1}, {5, 5, 5}},
        {{6, 7, 8}, {0, 1, 2}, {3, 4, 5}, {1, 3, 2}});
}

TEST(GeometryComponents, ByEdgesAndByVertices) {
    const Mesh mesh = bow_tie();
    const geometry::Components by_edge = connected_components(mesh);
    EXPECT_EQ(values_of(by_edge.of_face), (std::vector<int32_t>{0, 1, 2, 1}));
    EXPECT_EQ(values_of(by_edge.of_vertex), (std::vector<int32_t>{1, 1, 1, 1, 2, 2, 0, 0, 0, -1}));
    EXPECT_EQ(by_edge.faces, (std::vector<int64_t>{1, 2, 1}));
    EXPECT_EQ(by_edge.areas, (std::vector<double>{0.5, 1, 0.5}));
    const geometry::Components by_vertex = connected_components(mesh, Connection::vertices);
    EXPECT_EQ(values_of(by_vertex.of_face), (std::vector<int32_t>{0, 1, 1, 1}));
    EXPECT_EQ(by_vertex.size(), 2);
    EXPECT_EQ(connected_components(mesh_of({{0, 0, 0}}, {})).size(), 0);
}

TEST(GeometryComponents, AgreeWithAFloodOfRandomMeshes) {
    for (const auto connection : {Connection::edges, Connection::vertices}) {
        Mesh mesh = random_mesh(300, 6);
        mesh.triangles = Array<int32_t, 2>({130, 3});  // few enough to fall apart
        for (int64_t i = 0; i < 390; ++i)
            mesh.triangles.data()[i] = static_cast<int32_t>((Rng(3).below(i / 3, 290) + i % 3 * (1 + i / 3 % 3)) % 300);
        const auto touch = [&](int64_t f, int64_t g) {
            std::set<int32_t> common;
            for (int a = 0; a < 3; ++a)
                for (int b = 0; b < 3; ++b)
                    if (mesh.triangles.view()(f, a) == mesh.triangles.view()(g, b))
                        common.insert(mesh.triangles.view()(f, a));
            return common.size() >= (connection == Connection::edges ? 2u : 1u);
        };
        std::vector<int32_t> label(130, -1);
        int32_t count = 0;
        for (int64_t seed = 0; seed < 130; ++seed) {
            if (label[seed] >= 0) continue;
            std::vector<int64_t> queue = {seed};
            label[seed] = count;
            for (size_t k = 0; k < queue.size(); ++k)
                for (int64_t g = 0; g < 130; ++g)
                    if (label[g] < 0 && touch(queue[k], g)) label[g] = count, queue.push_back(g);
            ++count;
        }
        EXPECT_GT(count, 3);
        EXPECT_EQ(values_of(connected_components(mesh, connection).of_face), label);
    }
}

TEST(GeometryComponents, SmallOnesAreRemovedWithTheirVertices) {
    Mesh mesh = bow_tie();
    number_parts(mesh);
    geometry::ComponentLimits limits;
    limits.min_faces = 2;
    const geometry::MeshPart part = geometry::remove_small_components(mesh, limits);
    validate(part.mesh);
    EXPECT_EQ(values_of(part.faces), (std::vector<int32_t>{1, 3}));
    EXPECT_EQ(values_of(part.vertices), (std::vector<int32_t>{0, 1, 2, 3, 9}));  // 9 was loose before
    EXPECT_EQ(values_of(part.new_vertices), (std::vector<int32_t>{0, 1, 2, 3, -1, -1, -1, -1, -1, 4}));
    EXPECT_EQ(find(part.mesh.face_attributes, "face_id")->value(1), 3);
    EXPECT_EQ(find(part.mesh.vertices.attributes, "vertex_id")->value(4), 9);

    limits = {};
    limits.largest = 2;  // of the two of half the area the one of the first face
    EXPECT_EQ(values_of(geometry::remove_small_components(mesh, limits).faces), (std::vector<int32_t>{0, 1, 3}));
    limits.largest = 0;
    EXPECT_EQ(geometry::remove_small_components(mesh, limits).mesh.faces(), 0);
    limits = {};
    limits.min_area = 0.6;
    EXPECT_EQ(values_of(geometry::remove_small_components(mesh, limits).faces), (std::vector<int32_t>{1, 3}));
    limits.largest = -1;
    EXPECT_EQ(bad_argument_of([&] { geometry::remove_small_components(mesh, limits); }),
              "remove_small_components: the largest -1 components");
}

}  // namespace
}  // namespace stipple::test
