#pragma once
// The edges of a mesh, their faces, and the neighbours of vertices. CPU.

#include <vector>

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// The edges of a mesh by (low vertex, high vertex), and the half-edges on each.
///
/// Half-edge 3 f + c runs from corner c of face f to the next corner. Those of edge e are half_edges[offsets[e]] to
/// half_edges[offsets[e + 1] - 1], ascending: one on a boundary, two inside a manifold, more elsewhere. Half-edges from
/// a vertex to itself (of a face that has a vertex twice) are on no edge; a face may lie on an edge twice.
struct MeshEdges {
    std::vector<std::array<int32_t, 2>> vertices;  // [edges] low, high
    std::vector<int64_t> offsets;                  // [edges + 1]
    std::vector<int64_t> half_edges;

    int64_t size() const { return static_cast<int64_t>(vertices.size()); }
    int64_t faces_on(int64_t edge) const { return offsets[edge + 1] - offsets[edge]; }
};

/// Throws Error{bad_argument} as require_mesh does and for a mesh on another device. O(n + m).
MeshEdges mesh_edges(const MeshView& mesh);

/// The vertices that share an edge with each vertex, ascending and each once: those of v are neighbours[offsets[v]] to
/// neighbours[offsets[v + 1] - 1]. None for a vertex without faces. Throws as mesh_edges. O(n + m).
struct VertexAdjacency {
    std::vector<int64_t> offsets;  // [n + 1]
    std::vector<int32_t> neighbours;
};
VertexAdjacency vertex_adjacency(const MeshView& mesh);

}  // namespace stipple::geometry
