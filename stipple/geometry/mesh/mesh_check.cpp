#include "stipple/geometry/mesh_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kGrain = 4096;

/// The corners (3 * face + place) of every vertex, faces ascending: those of v are of[first[v]] .. of[first[v + 1] -
/// 1].
struct Corners {
    std::vector<int64_t> first, of;

    explicit Corners(const MeshView& mesh)
        : first(static_cast<size_t>(mesh.vertices.size(0)) + 1), of(static_cast<size_t>(3 * mesh.faces())) {
        const int32_t* vertex = mesh.triangles.data();
        for (size_t i = 0; i < of.size(); ++i) ++first[static_cast<size_t>(vertex[i]) + 1];
        for (size_t v = 1; v < first.size(); ++v) first[v] += first[v - 1];
        std::vector<int64_t> next(first.begin(), first.end() - 1);
        for (size_t i = 0; i < of.size(); ++i) of[static_cast<size_t>(next[vertex[i]]++)] = static_cast<int64_t>(i);
    }
};

/// Sets of faces, joined by any number of threads at a time: how many there are in the end does not depend on the
/// order.
class FaceSets {
public:
    explicit FaceSets(int64_t n) : parent_(static_cast<size_t>(n)) {
        for (int64_t i = 0; i < n; ++i) parent_[static_cast<size_t>(i)] = static_cast<int32_t>(i);
    }
    void join(int32_t a, int32_t b) {
        for (;;) {
            a = root(a), b = root(b);
            if (a == b) return;
            if (a < b) std::swap(a, b);  // the higher root goes below the lower: no cycles
            if (parent_[a].compare_exchange_strong(a, b)) return;
        }
    }
    int64_t count() const {
        int64_t roots = 0;
        for (size_t i = 0; i < parent_.size(); ++i) roots += parent_[i] == static_cast<int32_t>(i);
        return roots;
    }

private:
    int32_t root(int32_t i) {
        for (int32_t above = parent_[i]; above != i; above = parent_[i]) {
            int32_t expected = above;
            parent_[i].compare_exchange_weak(expected, parent_[above]);  // halves the path
            i = above;
        }
        return i;
    }
    std::vector<std::atomic<int32_t>> parent_;
};

/// One of the two edges that a corner has at its vertex.
struct EdgeEnd {
    int32_t far;     // the other end of the edge
    int32_t corner;  // rank of the corner among those of the vertex
    bool outgoing;   // the face runs along the edge away from the vertex
};

/// Counts what is wrong around vertices. An edge is counted at its lower end.
class Stars {
public:
    Stars(const MeshView& mesh, const Corners& corners, FaceSets& sets)
        : vertex_(mesh.triangles.data()), corners_(corners), sets_(sets) {}

    void visit(int32_t v, MeshCheck& check, int64_t& edges) {
        const int64_t* corner = corners_.of.data() + corners_.first[v];
        const auto n = static_cast<int32_t>(corners_.first[v + 1] - corners_.first[v]);
        check.unreferenced_vertices += n == 0;
        if (n == 0) return;
        ends_.clear();
        fan_.resize(static_cast<size_t>(n));
        for (int32_t i = 0; i < n; ++i) {
            const int64_t base = corner[i] / 3 * 3, place = corner[i] - base;
            ends_.push_back({vertex_[base + (place + 1) % 3], i, true});
            ends_.push_back({vertex_[base + (place + 2) % 3], i, false});
            fan_[static_cast<size_t>(i)] = i;
        }
        std::sort(ends_.begin(), ends_.end(), [](const EdgeEnd& a, const EdgeEnd& b) { return a.far < b.far; });
        int32_t fans = n;
        bool branches = false;
        for (size_t begin = 0, end; begin < ends_.size(); begin = end) {
            int64_t outgoing = 0;
            for (end = begin; end < ends_.size() && ends_[end].far == ends_[begin].far; ++end) {
                outgoing += ends_[end].outgoing;
                if (end == begin) continue;
                fans -= join_corners(ends_[begin].corner, ends_[end].corner);
                if (v <= ends_[begin].far)
                    sets_.join(static_cast<int32_t>(corner[ends_[begin].corner] / 3),
                               static_cast<int32_t>(corner[ends_[end].corner] / 3));
            }
            auto faces = static_cast<int64_t>(end - begin);
            branches |= faces > 2;
            if (ends_[begin].far < v) continue;
            if (ends_[begin].far == v) faces = outgoing;  // both ends of an edge from v to v are here
            edges += 1;
            check.boundary_edges += faces == 1;
            check.nonmanifold_edges += faces > 2;
            check.misoriented_edges += faces == 2 && outgoing != 1;
        }
        check.nonmanifold_vertices += branches || fans != 1;
    }

    /// Faces at v, the lowest of their vertices, that have the vertices of an earlier one.
    int64_t duplicates(int32_t v) {
        triples_.clear();
        for (int64_t i = corners_.first[v]; i < corners_.first[v + 1]; ++i) {
            const int64_t base = corners_.of[i] / 3 * 3, place = corners_.of[i] - base;
            const int32_t a = vertex_[base + (place + 1) % 3], b = vertex_[base + (place + 2) % 3];
            if (a < v || b < v) continue;
            const bool counted = (vertex_[base] == v && place > 0) || (vertex_[base + 1] == v && place > 1);
            if (!counted) triples_.push_back({std::min(a, b), std::max(a, b)});
        }
        std::sort(triples_.begin(), triples_.end());
        return triples_.end() - std::unique(triples_.begin(), triples_.end());
    }

private:
    int32_t fan_root(int32_t i) {
        while (fan_[i] != i) i = fan_[i] = fan_[fan_[i]];
        return i;
    }
    int32_t join_corners(int32_t a, int32_t b) {
        a = fan_root(a), b = fan_root(b);
        fan_[std::max(a, b)] = std::min(a, b);
        return a != b;
    }

    const int32_t* vertex_;
    const Corners& corners_;
    FaceSets& sets_;
    std::vector<EdgeEnd> ends_;
    std::vector<int32_t> fan_;
    std::vector<std::pair<int32_t, int32_t>> triples_;
};

struct Sums {
    double area = 0, volume = 0;
    int64_t degenerate = 0;
};

Sums measure(const MeshView& mesh, int64_t begin, int64_t end) {
    // Volumes of tetrahedra about a vertex of the mesh: about the origin, a mesh far from it would lose its digits.
    const float* apex = mesh.vertices.data() + 3 * int64_t{mesh.triangles.data()[0]};
    Sums sums;
    for (int64_t f = begin; f < end; ++f) {
        const int32_t* corner = mesh.triangles.data() + 3 * f;
        double p[3][3];
        for (int i = 0; i < 3; ++i)
            for (int k = 0; k < 3; ++k)
                p[i][k] = double{mesh.vertices.data()[3 * int64_t{corner[i]} + k]} - double{apex[k]};
        const double u[3] = {p[1][0] - p[0][0], p[1][1] - p[0][1], p[1][2] - p[0][2]};
        const double v[3] = {p[2][0] - p[0][0], p[2][1] - p[0][1], p[2][2] - p[0][2]};
        const double n[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
        const double twice = std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        const bool repeats = corner[0] == corner[1] || corner[1] == corner[2] || corner[2] == corner[0];
        sums.degenerate += repeats || twice == 0;
        sums.area += twice / 2;
        sums.volume += (p[0][0] * n[0] + p[0][1] * n[1] + p[0][2] * n[2]) / 6;
    }
    return sums;
}

int64_t chunks_of(int64_t n) {
    return (n + kGrain - 1) / kGrain;
}

}  // namespace

const Fields& mesh_check_fields() {
    static const Fields fields = {
        field<&MeshCheck::components>("components", "Parts of faces that edges connect"),
        field<&MeshCheck::euler>("euler", "Vertices in use, less edges, and faces: the Euler number"),
        field<&MeshCheck::area>("area", "Area of all faces").unit("unit of the mesh, squared"),
        field<&MeshCheck::boundary_edges>("boundary_edges", "Edges of one face"),
        field<&MeshCheck::nonmanifold_edges>("nonmanifold_edges", "Edges of more than two faces"),
        field<&MeshCheck::misoriented_edges>("misoriented_edges", "Edges whose two faces run along them the same way"),
        field<&MeshCheck::nonmanifold_vertices>("nonmanifold_vertices", "Vertices whose faces are more than one fan"),
        field<&MeshCheck::degenerate_faces>("degenerate_faces", "Faces with a vertex twice, or without area"),
        field<&MeshCheck::duplicate_faces>("duplicate_faces", "Faces with the vertices of an earlier one"),
        field<&MeshCheck::unreferenced_vertices>("unreferenced_vertices", "Vertices of no face")};
    return fields;
}

MeshCheck check_mesh(const MeshView& mesh) {
    require_mesh("check_mesh", mesh);
    STIPPLE_REQUIRE(mesh.device().type == DeviceType::cpu, "check_mesh: the mesh is on {}, must be on the CPU",
                    to_string(mesh.device()));
    const int64_t n = mesh.vertices.size(0), m = mesh.faces();
    const Corners corners(mesh);
    FaceSets sets(m);
    MeshCheck total;
    int64_t total_edges = 0;
    std::vector<MeshCheck> checks(static_cast<size_t>(chunks_of(n)));
    std::vector<int64_t> edges(checks.size());
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        Stars stars(mesh, corners, sets);
        MeshCheck& check = checks[static_cast<size_t>(begin / kGrain)];
        for (int64_t v = begin; v < end; ++v) {
            stars.visit(static_cast<int32_t>(v), check, edges[static_cast<size_t>(begin / kGrain)]);
            check.duplicate_faces += stars.duplicates(static_cast<int32_t>(v));
        }
    });
    for (size_t i = 0; i < checks.size(); ++i) {
        total.boundary_edges += checks[i].boundary_edges;
        total.nonmanifold_edges += checks[i].nonmanifold_edges;
        total.misoriented_edges += checks[i].misoriented_edges;
        total.nonmanifold_vertices += checks[i].nonmanifold_vertices;
        total.duplicate_faces += checks[i].duplicate_faces;
        total.unreferenced_vertices += checks[i].unreferenced_vertices;
        total_edges += edges[i];
    }
    std::vector<Sums> sums(static_cast<size_t>(chunks_of(m)));
    parallel_for(m, kGrain, [&](int64_t begin, int64_t end) {
        sums[static_cast<size_t>(begin / kGrain)] = measure(mesh, begin, end);
    });
    for (const Sums& part : sums) {
        total.area += part.area;
        total.volume += part.volume;
        total.degenerate_faces += part.degenerate;
    }
    total.components = sets.count();
    total.euler = n - total.unreferenced_vertices - total_edges + m;
    return total;
}

}  // namespace stipple::geometry
