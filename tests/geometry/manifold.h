#pragma once
// Whether a mesh is closed, oriented and 2-manifold by indices, written down plainly.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::test {

/// "" or the first thing that is wrong. border(a, b) tells whether an edge may have one face.
template <class Border>
std::string not_manifold(const Mesh& mesh, Border border) {
    struct Corner {
        int32_t at, next, last;  // of a face, beginning at each of its vertices
        bool operator<(const Corner& other) const { return std::tie(at, next) < std::tie(other.at, other.next); }
    };
    std::vector<Corner> corners;
    for (int64_t face = 0; face < mesh.faces(); ++face) {
        const int32_t* t = mesh.triangles.data() + 3 * face;
        if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0]) return "a face has a vertex twice";
        for (int i = 0; i < 3; ++i) corners.push_back({t[i], t[(i + 1) % 3], t[(i + 2) % 3]});
    }
    std::sort(corners.begin(), corners.end());
    const auto same_edge = [](const Corner& a, const Corner& b) { return a.at == b.at && a.next == b.next; };
    if (std::adjacent_find(corners.begin(), corners.end(), same_edge) != corners.end())
        return "two faces run along an edge one way";
    for (const Corner& corner : corners) {
        if (!std::binary_search(corners.begin(), corners.end(), Corner{corner.next, corner.at, 0}) &&
            !border(corner.at, corner.next))
            return "an edge has one face";
    }
    for (size_t begin = 0, end; begin < corners.size(); begin = end) {  // the faces of a vertex, around it
        for (end = begin; end < corners.size() && corners[end].at == corners[begin].at;) ++end;
        const auto first = corners.begin() + static_cast<int64_t>(begin),
                   last = corners.begin() + static_cast<int64_t>(end);
        size_t start = begin;  // one that no other leads to, if there is one: the fan is open
        for (size_t i = begin; i < end; ++i) {
            const auto leads = [&](const Corner& corner) { return corner.last == corners[i].next; };
            if (std::none_of(first, last, leads)) start = i;
        }
        size_t steps = 1;
        for (int32_t to = corners[start].last; to != corners[start].next; ++steps) {
            const auto next = std::find_if(first, last, [&](const Corner& corner) { return corner.next == to; });
            if (next == last) break;
            to = next->last;
        }
        if (steps != end - begin) return "the faces of a vertex are not one fan";
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
        volume += a[0] * (double{b[1]} * c[2] - double{b[2]} * c[1]) +
                  a[1] * (double{b[2]} * c[0] - double{b[0]} * c[2]) +
                  a[2] * (double{b[0]} * c[1] - double{b[1]} * c[0]);
    }
    return volume / 6;
}

}  // namespace stipple::test
