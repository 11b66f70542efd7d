#pragma once
// The triangles of a cell for each of the 256 ways in which its corners lie above or below the level.
//
// Derived, not copied: on every face of the cell the crossed edges are joined by segments that depend on the signs of
// the face's corners alone, so two cells that share a face agree on it. Where two diagonal corners are above, the
// segments go around the two below: what is above stays connected. The segments close to loops, and each loop is cut
// into triangles by diagonals that lie inside the cell, none in a face of it: there the neighbour could have the same
// edge once more. Hence every edge has exactly two triangles, which run along it in opposite directions.
//
// Corner i is at (i & 1, i >> 1 & 1, i >> 2). Edges 0-3 run along x, 4-7 along y, 8-11 along z.

#include <array>
#include <cstdint>

namespace stipple::geometry {

constexpr int kCellEdges = 12;

struct CellEdge {
    int8_t from = 0, to = 0;  // corners
};

/// Along axis a, from the corner whose bit a is 0; the other two bits count.
constexpr CellEdge cell_edge(int edge) {
    const int axis = edge / 4, rest = edge % 4;
    const int low = rest & 1, high = rest >> 1;
    const int corner = axis == 0 ? low << 1 | high << 2 : axis == 1 ? low | high << 2 : low | high << 1;
    return {static_cast<int8_t>(corner), static_cast<int8_t>(corner | 1 << axis)};
}

constexpr int edge_between(int a, int b) {
    for (int edge = 0; edge < kCellEdges; ++edge) {
        const CellEdge e = cell_edge(edge);
        if ((e.from == a && e.to == b) || (e.from == b && e.to == a)) return edge;
    }
    return -1;
}

/// Whether two edges lie in one face of the cell.
constexpr bool share_face(int a, int b) {
    for (int axis = 0; axis < 3; ++axis) {
        for (int side = 0; side < 2; ++side) {
            const auto in = [&](int edge) {
                return (cell_edge(edge).from >> axis & 1) == side && (cell_edge(edge).to >> axis & 1) == side;
            };
            if (in(a) && in(b)) return true;
        }
    }
    return false;
}

struct CellCase {
    static constexpr int kMost = 5;  // triangles
    int8_t triangles = 0;
    std::array<std::array<int8_t, 3>, kMost> edges{};
};

/// Corners of a face, counterclockwise seen from outside of the cell.
constexpr std::array<int, 4> face_corners(int axis, int side) {
    const int u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3, base = side << axis;
    if (side == 1) return {base, base | u, base | u | v, base | v};
    return {base, base | v, base | u | v, base | u};
}

/// Cuts the loop's corners [first, last] and the edge between those two into triangles. Returns false where every way
/// needs a diagonal in a face.
constexpr bool triangulate(const int* loop, int first, int last, CellCase& to) {
    if (last - first < 2) return true;
    for (int apex = first + 1; apex < last; ++apex) {
        if (apex > first + 1 && share_face(loop[first], loop[apex])) continue;
        if (apex < last - 1 && share_face(loop[apex], loop[last])) continue;
        CellCase attempt = to;
        if (attempt.triangles == CellCase::kMost) return false;
        // Backwards: the loop has what is above on its left as seen from outside of the cell.
        attempt.edges[attempt.triangles++] = {static_cast<int8_t>(loop[last]), static_cast<int8_t>(loop[apex]),
                                              static_cast<int8_t>(loop[first])};
        if (!triangulate(loop, first, apex, attempt) || !triangulate(loop, apex, last, attempt)) continue;
        to = attempt;
        return true;
    }
    return false;
}

/// Bit i of `above`: corner i is above. `complete` becomes false where a loop could not be cut.
constexpr CellCase make_cell_case(int above, bool& complete) {
    std::array<int, kCellEdges> next{};  // along the loop; -1: the edge is not crossed
    next.fill(-1);
    for (int axis = 0; axis < 3; ++axis) {
        for (int side = 0; side < 2; ++side) {
            const std::array<int, 4> corner = face_corners(axis, side);
            const auto is_above = [&](int i) { return (above >> corner[i & 3] & 1) == 1; };
            for (int i = 0; i < 4; ++i) {
                if (!is_above(i) || is_above(i + 1)) continue;
                // Walking around the face we leave what is above here, and come back at the first edge that returns.
                int back = i + 1;
                while (is_above(back) || !is_above(back + 1)) ++back;
                next[edge_between(corner[i], corner[(i + 1) & 3])] =
                    edge_between(corner[back & 3], corner[(back + 1) & 3]);
            }
        }
    }
    CellCase result;
    std::array<bool, kCellEdges> done{};
    for (int start = 0; start < kCellEdges; ++start) {
        if (next[start] < 0 || done[start]) continue;
        int loop[kCellEdges] = {}, length = 0;
        for (int edge = start; !done[edge]; edge = next[edge]) {
            done[edge] = true;
            loop[length++] = edge;
        }
        complete &= triangulate(loop, 0, length - 1, result);
    }
    return result;
}

struct CellTable {
    std::array<CellCase, 256> cases{};
    bool complete = true;

    constexpr CellTable() {
        for (int above = 0; above < 256; ++above) cases[above] = make_cell_case(above, complete);
    }
};

inline constexpr CellTable kCellTable;
static_assert(kCellTable.complete);

}  // namespace stipple::geometry
