#include "stipple/geometry/watertight/shell_cleanup.h"

#include <algorithm>
#include <tuple>

namespace stipple::geometry {
namespace {

struct ShortEdge {
    double length_sq;
    int32_t keep, drop;

    bool operator<(const ShortEdge& other) const {
        return std::tie(length_sq, keep, drop) < std::tie(other.length_sq, other.keep, other.drop);
    }
};

Vec3d normal_of(const Vec3d& a, const Vec3d& b, const Vec3d& c) {
    return cross(b - a, c - a);
}

std::vector<ShortEdge> short_edges(const ShellMesh& mesh, double shortest) {
    std::vector<ShortEdge> edges;
    for (const auto& triangle : mesh.triangles) {
        for (int i = 0; i < 3; ++i) {
            const int32_t a = triangle[i], b = triangle[(i + 1) % 3];
            if (a > b) continue;  // the other face has it the other way
            const Vec3d along = mesh.positions[b] - mesh.positions[a];
            if (dot(along, along) < shortest * shortest) edges.push_back({dot(along, along), a, b});
        }
    }
    std::sort(edges.begin(), edges.end());
    return edges;
}

/// One pass: edges whose surroundings no earlier one has changed.
class Collapse {
public:
    explicit Collapse(ShellMesh& mesh) : mesh_(mesh), first_(mesh.positions.size() + 1), to_(mesh.positions.size()) {
        for (const auto& triangle : mesh.triangles)
            for (int32_t v : triangle) ++first_[v + 1];
        for (size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
        faces_.resize(3 * mesh.triangles.size());
        std::vector<int32_t> next(first_.begin(), first_.end() - 1);
        for (size_t f = 0; f < mesh.triangles.size(); ++f)
            for (int32_t v : mesh.triangles[f]) faces_[next[v]++] = static_cast<int32_t>(f);
        for (size_t v = 0; v < to_.size(); ++v) to_[v] = static_cast<int32_t>(v);
        locked_.resize(to_.size());
    }

    bool run(const std::vector<ShortEdge>& edges) {
        bool any = false;
        for (const ShortEdge& edge : edges) any |= try_collapse(edge.keep, edge.drop);
        if (any) apply();
        return any;
    }

private:
    std::vector<int32_t> around(int32_t v) const {
        std::vector<int32_t> ring;
        for (int32_t i = first_[v]; i < first_[v + 1]; ++i)
            for (int32_t u : mesh_.triangles[faces_[i]])
                if (u != v) ring.push_back(u);
        std::sort(ring.begin(), ring.end());
        ring.erase(std::unique(ring.begin(), ring.end()), ring.end());
        return ring;
    }

    bool try_collapse(int32_t keep, int32_t drop) {
        if (locked_[keep] || locked_[drop]) return false;
        const std::vector<int32_t> near_keep = around(keep), near_drop = around(drop);
        for (const auto* ring : {&near_keep, &near_drop})
            for (int32_t v : *ring)
                if (locked_[v]) return false;
        // The link condition [Dey et al. 1999]: the two faces at the edge are all that the two stars share.
        std::vector<int32_t> shared;
        std::set_intersection(near_keep.begin(), near_keep.end(), near_drop.begin(), near_drop.end(),
                              std::back_inserter(shared));
        if (shared.size() != 2) return false;
        for (int32_t v : shared)
            if (first_[v + 1] - first_[v] <= 3) return false;
        if (near_keep.size() + near_drop.size() - 4 < 3 || turns_over(keep, drop)) return false;
        to_[drop] = keep;
        locked_[keep] = locked_[drop] = 1;
        for (const auto* ring : {&near_keep, &near_drop})
            for (int32_t v : *ring) locked_[v] = 1;
        return true;
    }

    bool turns_over(int32_t keep, int32_t drop) const {
        for (int32_t i = first_[drop]; i < first_[drop + 1]; ++i) {
            const auto& t = mesh_.triangles[faces_[i]];
            if (t[0] == keep || t[1] == keep || t[2] == keep) continue;
            Vec3d p[3], q[3];
            for (int k = 0; k < 3; ++k) {
                p[k] = mesh_.positions[t[k]];
                q[k] = mesh_.positions[t[k] == drop ? keep : t[k]];
            }
            const Vec3d before = normal_of(p[0], p[1], p[2]), after = normal_of(q[0], q[1], q[2]);
            if (dot(before, after) < 0.5 * dot(before, before)) return true;
        }
        return false;
    }

    void apply() {
        size_t kept = 0;
        for (const auto& t : mesh_.triangles) {
            const std::array<int32_t, 3> moved = {to_[t[0]], to_[t[1]], to_[t[2]]};
            if (moved[0] != moved[1] && moved[1] != moved[2] && moved[2] != moved[0]) mesh_.triangles[kept++] = moved;
        }
        mesh_.triangles.resize(kept);
        int32_t used = 0;
        for (size_t v = 0; v < to_.size(); ++v) {
            if (to_[v] != static_cast<int32_t>(v)) continue;
            mesh_.positions[used] = mesh_.positions[v];
            to_[v] = used++;  // from now on: the new number
        }
        mesh_.positions.resize(used);
        for (auto& t : mesh_.triangles)
            for (int32_t& v : t) v = to_[v];
    }

    ShellMesh& mesh_;
    std::vector<int32_t> first_, faces_;  // the faces of each vertex
    std::vector<int32_t> to_;             // the vertex that each becomes
    std::vector<uint8_t> locked_;
};

}  // namespace

void collapse_short_edges(ShellMesh& mesh, double shortest) {
    constexpr int kPasses = 4;
    for (int pass = 0; pass < kPasses; ++pass) {
        const std::vector<ShortEdge> edges = short_edges(mesh, shortest);
        if (edges.empty() || !Collapse(mesh).run(edges)) return;
    }
}

}  // namespace stipple::geometry
