#include "stipple/geometry/mesh_edges.h"

#include <algorithm>
#include <numeric>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh/mesh_vectors.h"

namespace stipple::geometry {
namespace {

/// The vertex a half-edge runs to.
int32_t end_of(const int32_t* corners, int64_t half_edge) {
    return corners[half_edge % 3 == 2 ? half_edge - 2 : half_edge + 1];
}

/// Puts offsets, moved to the end of each group while filling, back to the beginnings.
void move_back(std::vector<int64_t>& offsets) {
    std::move_backward(offsets.begin(), offsets.end() - 1, offsets.end());
    offsets[0] = 0;
}

}  // namespace

MeshEdges mesh_edges(const MeshView& mesh) {
    require_cpu_mesh("mesh_edges", mesh);
    const int32_t* corners = mesh.triangles.data();
    const int64_t n = mesh.vertices.size(0), all = 3 * mesh.faces();
    const auto low = [=](int64_t h) { return std::min(corners[h], end_of(corners, h)); };
    const auto high = [=](int64_t h) { return std::max(corners[h], end_of(corners, h)); };

    // By low vertex, counted; the few of one vertex by comparison.
    std::vector<int64_t> of_low(static_cast<size_t>(n) + 1, 0);
    for (int64_t h = 0; h < all; ++h)
        if (low(h) != high(h)) ++of_low[low(h)];
    std::exclusive_scan(of_low.begin(), of_low.end(), of_low.begin(), int64_t{0});
    struct Entry {
        int32_t high;
        int64_t half_edge;
        bool operator<(const Entry& o) const { return high != o.high ? high < o.high : half_edge < o.half_edge; }
    };
    std::vector<Entry> entries(static_cast<size_t>(of_low[n]));
    for (int64_t h = 0; h < all; ++h)
        if (low(h) != high(h)) entries[of_low[low(h)]++] = {high(h), h};
    move_back(of_low);

    constexpr int64_t kVertices = 4096;
    std::vector<int64_t> first(static_cast<size_t>((n + kVertices - 1) / kVertices) + 1, 0);  // edges before each piece
    parallel_for(n, kVertices, [&](int64_t begin, int64_t end) {
        int64_t count = 0;
        for (int64_t v = begin; v < end; ++v) {
            std::sort(entries.begin() + of_low[v], entries.begin() + of_low[v + 1]);
            for (int64_t i = of_low[v]; i < of_low[v + 1]; ++i)
                count += i == of_low[v] || entries[i].high != entries[i - 1].high;
        }
        first[begin / kVertices + 1] = count;
    });
    std::inclusive_scan(first.begin(), first.end(), first.begin());

    MeshEdges edges;
    edges.vertices.resize(static_cast<size_t>(first.back()));
    edges.offsets.resize(static_cast<size_t>(first.back()) + 1);
    edges.half_edges.resize(entries.size());
    edges.offsets.back() = static_cast<int64_t>(entries.size());
    parallel_for(n, kVertices, [&](int64_t begin, int64_t end) {
        int64_t edge = first[begin / kVertices];
        for (int64_t v = begin; v < end; ++v) {
            for (int64_t i = of_low[v]; i < of_low[v + 1]; ++i) {
                edges.half_edges[i] = entries[i].half_edge;
                if (i > of_low[v] && entries[i].high == entries[i - 1].high) continue;
                edges.vertices[edge] = {static_cast<int32_t>(v), entries[i].high};
                edges.offsets[edge++] = i;
            }
        }
    });
    return edges;
}

VertexAdjacency vertex_adjacency(const MeshView& mesh) {
    const MeshEdges edges = mesh_edges(mesh);
    VertexAdjacency adjacency;
    std::vector<int64_t>& offsets = adjacency.offsets;
    offsets.assign(static_cast<size_t>(mesh.vertices.size(0)) + 1, 0);
    for (const auto& [low, high] : edges.vertices) ++offsets[low], ++offsets[high];
    std::exclusive_scan(offsets.begin(), offsets.end(), offsets.begin(), int64_t{0});
    adjacency.neighbours.resize(static_cast<size_t>(offsets.back()));
    // Edges come by (low, high): the lower neighbours of a vertex in order, and after them the higher ones.
    for (const auto& [low, high] : edges.vertices) adjacency.neighbours[offsets[high]++] = low;
    for (const auto& [low, high] : edges.vertices) adjacency.neighbours[offsets[low]++] = high;
    move_back(offsets);
    return adjacency;
}

}  // namespace stipple::geometry
