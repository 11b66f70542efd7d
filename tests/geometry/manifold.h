#pragma once
// Whether a mesh is closed, oriented and 2-manifold by indices, written down plainly.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::test {

/// "" or the first thing that is wrong. `border` tells whether an edge of one face is allowed.
template <class Border>
std::string not_manifold(const Mesh& mesh, Border border) {
    const int32_t* corner = mesh.triangles.data();
    std::map<std::pair<int32_t, int32_t>, int> directed;
    std::map<int32_t, std::map<int32_t, int32_t>> links;  // of a vertex: from one neighbour to the next around it
    for (int64_t face = 0; face < mesh.faces(); ++face) {
        for (int i = 0; i < 3; ++i) {
            const int32_t a = corner[3 * face + i], b = corner[3 * face + (i + 1) % 3],
                          c = corner[3 * face + (i + 2) % 3];
            if (a == b) return "a face has a vertex twice";
            if (++directed[{a, b}] > 1) return "two faces run along an edge the same way";
            if (!links[a].emplace(b, c).second) return "a vertex has an edge twice";
        }
    }
    for (const auto& [edge, count] : directed) {
        if (!directed.count({edge.second, edge.first}) && !border(edge.first, edge.second))
            return "an edge has one face";
    }
    for (const auto& [vertex, link] : links) {
        size_t open = 0;  // ways around the vertex that begin at a border
        int32_t start = link.begin()->first;
        for (const auto& [from, to] : link) {
            const bool has_before =
                std::any_of(link.begin(), link.end(), [f = from](const auto& l) { return l.second == f; });
            if (!has_before) ++open, start = from;
        }
        size_t steps = 0;
        for (int32_t at = start; steps < link.size(); ++steps) {
            const auto next = link.find(at);
            if (next == link.end()) break;
            at = next->second;
            if (at == start) {
                ++steps;
                break;
            }
        }
        if (open > 1 || steps != link.size()) return "the faces of a vertex are not one fan";
    }
    return "";
}

inline std::string not_closed_manifold(const Mesh& mesh) {
    return not_manifold(mesh, [](int32_t, int32_t) { return false; });
}

/// By the divergence theorem; positive with normals outwards.
inline double volume_of(const Mesh& mesh) {
    double volume = 0;
    const float* p = mesh.vertices.positions.data();
    for (int64_t face = 0; face < mesh.faces(); ++face) {
        const int32_t* t = mesh.triangles.data() + 3 * face;
        const float *a = p + 3 * int64_t{t[0]}, *b = p + 3 * int64_t{t[1]}, *c = p + 3 * int64_t{t[2]};
        volume +=
            (a[0] * (double{b[1]} * c[2] - double{b[2]} * c[1]) + a[1] * (double{b[2]} * c[0] - double{b[0]} * c[2]) +
             a[2] * (double{b[0]} * c[1] - double{b[1]} * c[0])) /
            6;
    }
    return volume;
}

}  // namespace stipple::test
