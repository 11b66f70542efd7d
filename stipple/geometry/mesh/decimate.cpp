#include "stipple/geometry/decimate.h"

#include <algorithm>
#include <queue>

#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/mesh_edges.h"

namespace stipple::geometry {
namespace {

/// Planes of a border count for this many times their face.
constexpr double kBorderWeight = 100;
/// Where errors are nearly the same, as on flat parts, shorter edges go first: a length counts as this share of its
/// square. Without it all of a plane would go into one vertex, with time that grows with the square of its faces.
constexpr double kEven = 1e-6;
/// A face may turn by less than this: the cosine of 78 degrees.
constexpr double kLeastCosine = 0.2;

/// p -> p' A p + 2 b' p + c, the sum of squared distances from planes, weighted by area.
struct Quadric {
    double xx = 0, xy = 0, xz = 0, yy = 0, yz = 0, zz = 0;
    Vec3d b;
    double c = 0;

    /// The plane through a point with this unit normal.
    void add_plane(const Vec3d& n, const Vec3d& point, double weight) {
        const double d = -dot(n, point);
        xx += weight * n.x * n.x, xy += weight * n.x * n.y, xz += weight * n.x * n.z;
        yy += weight * n.y * n.y, yz += weight * n.y * n.z, zz += weight * n.z * n.z;
        b = b + weight * d * n;
        c += weight * d * d;
    }
    Quadric operator+(const Quadric& o) const {
        return {xx + o.xx, xy + o.xy, xz + o.xz, yy + o.yy, yz + o.yz, zz + o.zz, b + o.b, c + o.c};
    }
    double at(const Vec3d& p) const {
        const Vec3d ap = {xx * p.x + xy * p.y + xz * p.z, xy * p.x + yy * p.y + yz * p.z,
                          xz * p.x + yz * p.y + zz * p.z};
        return std::max(0.0, dot(ap, p) + 2 * dot(b, p) + c);
    }
    /// The sum of the weights: normals are of unit length.
    double weight() const { return xx + yy + zz; }
    /// Where it is smallest; false where that is a line or a plane.
    bool lowest(Vec3d& p) const {
        const Vec3d r0 = {xx, xy, xz}, r1 = {xy, yy, yz}, r2 = {xz, yz, zz};
        const Vec3d c0 = cross(r1, r2), c1 = cross(r2, r0), c2 = cross(r0, r1);
        const double determinant = dot(r0, c0), size = xx + yy + zz;
        if (!(std::abs(determinant) > 1e-6 * size * size * size)) return false;
        p = (-1 / determinant) * (b.x * c0 + b.y * c1 + b.z * c2);
        return true;
    }
};

/// One edge to contract, and what it was based on: out of date when a vertex has changed since.
struct Contraction {
    double error;  // with what keeps the edges even
    int32_t a, b;  // a < b
    int32_t stamp_a, stamp_b;
    Vec3d to;
    bool operator<(const Contraction& o) const {  // the first to do is the largest
        return error != o.error ? error > o.error : a != o.a ? a > o.a : b > o.b;
    }
};

class Decimation {
public:
    Decimation(const Mesh& mesh, double max_error)
        : n_(mesh.vertices.size()),
          most_squared_(max_error * max_error),
          places_(static_cast<size_t>(n_)),
          quadrics_(static_cast<size_t>(n_)),
          faces_of_(static_cast<size_t>(n_)),
          stamps_(static_cast<size_t>(n_), 0),
          into_(static_cast<size_t>(n_), -1),
          on_border_(static_cast<size_t>(n_), 0) {
        const MeshView view(mesh);
        const MeshEdges edges = mesh_edges(view);
        // About the middle: quadrics of far places would lose their digits.
        const Bounds bounds = bounds_of(mesh.vertices);
        middle_ = {0.5 * (bounds.min[0] + bounds.max[0]) - mesh.vertices.origin[0],
                   0.5 * (bounds.min[1] + bounds.max[1]) - mesh.vertices.origin[1],
                   0.5 * (bounds.min[2] + bounds.max[2]) - mesh.vertices.origin[2]};
        for (int64_t v = 0; v < n_; ++v) places_[v] = to_vec3(mesh.vertices.positions.data() + 3 * v) - middle_;
        for (int64_t f = 0; f < mesh.faces(); ++f) {
            const int32_t* t = mesh.triangles.data() + 3 * f;
            faces_.push_back({t[0], t[1], t[2]});
            alive_.push_back(t[0] != t[1] && t[1] != t[2] && t[2] != t[0]);
            if (!alive_.back()) continue;
            ++left_;
            const Vec3d normal = area_vector(view, f);
            for (const int32_t v : faces_.back()) {
                faces_of_[v].push_back(static_cast<int32_t>(f));
                quadrics_[v].add_plane(unit(normal), places_[v], 0.5 * length(normal));
            }
        }
        for (int64_t e = 0; e < edges.size(); ++e) hold_border(edges, e);
        for (const auto& [a, b] : edges.vertices) consider(a, b);
    }

    int64_t left() const { return left_; }

    /// Contracts the next edge; false when there is none.
    bool step() {
        while (!queue_.empty()) {
            const Contraction next = queue_.top();
            queue_.pop();
            if (into_[next.a] >= 0 || into_[next.b] >= 0 || stamps_[next.a] != next.stamp_a ||
                stamps_[next.b] != next.stamp_b)
                continue;
            if (!is_safe(next)) continue;
            contract(next);
            return true;
        }
        return false;
    }

    MeshPart finish(const Mesh& mesh) const {
        std::vector<int32_t> kept;
        for (size_t f = 0; f < faces_.size(); ++f)
            if (alive_[f]) kept.push_back(static_cast<int32_t>(f));
        MeshPart chosen = select_faces(mesh, View<const int32_t, 1>(kept.data(), {static_cast<int64_t>(kept.size())}));
        for (size_t i = 0; i < kept.size(); ++i)
            std::copy_n(faces_[kept[i]].data(), 3, chosen.mesh.triangles.data() + 3 * i);
        Array<uint8_t, 1> stays({n_});
        for (int64_t v = 0; v < n_; ++v) {
            stays.data()[v] = into_[v] < 0;
            if (stamps_[v] > 0) store(places_[v] + middle_, chosen.mesh.vertices.positions.data() + 3 * v);
        }
        MeshPart part = select_vertices(chosen.mesh, stays.view());
        part.faces = std::move(chosen.faces);
        for (int64_t v = 0; v < n_; ++v) {
            int64_t into = v;
            while (into_[into] >= 0) into = into_[into];
            part.new_vertices.data()[v] = part.new_vertices.data()[into];
        }
        return part;
    }

private:
    /// A border is held by the planes that stand on it.
    void hold_border(const MeshEdges& edges, int64_t e) {
        if (edges.faces_on(e) != 1) return;
        const std::array<int32_t, 3>& t = faces_[edges.half_edges[edges.offsets[e]] / 3];
        const auto [a, b] = edges.vertices[e];
        on_border_[a] = on_border_[b] = 1;
        const Vec3d along = places_[b] - places_[a];
        const Vec3d normal = cross(places_[t[1]] - places_[t[0]], places_[t[2]] - places_[t[0]]);
        for (const int32_t v : {a, b})
            quadrics_[v].add_plane(unit(cross(along, normal)), places_[v], kBorderWeight * dot(along, along));
    }

    void consider(int32_t a, int32_t b) {
        if (a > b) std::swap(a, b);
        const Quadric sum = quadrics_[a] + quadrics_[b];
        const Vec3d half = 0.5 * (places_[a] + places_[b]);
        Vec3d to;
        // A place far from the edge comes of planes that are nearly the same.
        if (!sum.lowest(to) || length(to - half) > 2 * length(places_[a] - places_[b])) {
            to = half;
            for (const Vec3d& end : {places_[a], places_[b]})
                if (sum.at(end) < sum.at(to)) to = end;
        }
        const double error = sum.at(to);
        if (error > most_squared_ * sum.weight()) return;
        const Vec3d along = places_[b] - places_[a];
        queue_.push({error + kEven * dot(along, along) * sum.weight(), a, b, stamps_[a], stamps_[b], to});
    }

    bool has(int32_t face, int32_t vertex) const {
        const auto& t = faces_[face];
        return t[0] == vertex || t[1] == vertex || t[2] == vertex;
    }

    std::vector<int32_t> around(int32_t v) const {
        std::vector<int32_t> found;
        for (const int32_t f : faces_of_[v])
            for (const int32_t other : faces_[f])
                if (other != v) found.push_back(other);
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    /// The surface stays what it is: the ends share no neighbour but those across the faces on the edge, no face falls
    /// on another, no two borders meet, and no face turns over.
    bool is_safe(const Contraction& next) const {
        int64_t on_edge = 0;
        for (const int32_t f : faces_of_[next.a]) on_edge += has(f, next.b);
        if (on_edge == 0 || (on_border_[next.a] && on_border_[next.b] && on_edge != 1)) return false;
        const std::vector<int32_t> around_a = around(next.a), around_b = around(next.b);
        std::vector<int32_t> common;
        std::set_intersection(around_a.begin(), around_a.end(), around_b.begin(), around_b.end(),
                              std::back_inserter(common));
        if (static_cast<int64_t>(common.size()) != on_edge) return false;
        for (const int32_t f : faces_of_[next.b]) {
            if (has(f, next.a)) continue;
            std::array<int32_t, 2> others = {};
            int count = 0;
            for (const int32_t v : faces_[f])
                if (v != next.b) others[count++] = v;
            for (const int32_t g : faces_of_[next.a])
                if (has(g, others[0]) && has(g, others[1])) return false;
        }
        return keeps_sides(next.a, next.b, next.to) && keeps_sides(next.b, next.a, next.to);
    }

    bool keeps_sides(int32_t moved, int32_t other, const Vec3d& to) const {
        for (const int32_t f : faces_of_[moved]) {
            if (has(f, other)) continue;
            Vec3d before[3], after[3];
            for (int c = 0; c < 3; ++c) {
                before[c] = places_[faces_[f][c]];
                after[c] = faces_[f][c] == moved ? to : before[c];
            }
            const Vec3d old_side = cross(before[1] - before[0], before[2] - before[0]);
            const Vec3d new_side = cross(after[1] - after[0], after[2] - after[0]);
            const double old_size = length(old_side), new_size = length(new_side);
            if (new_size == 0 && old_size > 0) return false;
            if (dot(old_side, new_side) < kLeastCosine * old_size * new_size) return false;
        }
        return true;
    }

    void contract(const Contraction& next) {
        const auto [error, a, b, stamp_a, stamp_b, to] = next;
        for (const int32_t f : faces_of_[b]) {
            if (has(f, a)) {
                alive_[f] = 0;
                --left_;
                for (const int32_t v : faces_[f])
                    if (v != b) std::erase(faces_of_[v], f);
            } else {
                std::replace(faces_[f].begin(), faces_[f].end(), b, a);
                faces_of_[a].push_back(f);
            }
        }
        faces_of_[b].clear();
        into_[b] = a;
        places_[a] = to;
        quadrics_[a] = quadrics_[a] + quadrics_[b];
        on_border_[a] |= on_border_[b];
        ++stamps_[a];
        for (const int32_t v : around(a)) consider(a, v);
    }

    int64_t n_, left_ = 0;
    double most_squared_;
    Vec3d middle_;
    std::vector<Vec3d> places_;
    std::vector<Quadric> quadrics_;
    std::vector<std::vector<int32_t>> faces_of_;
    std::vector<std::array<int32_t, 3>> faces_;
    std::vector<char> alive_;
    std::vector<int32_t> stamps_;  // how often each vertex has changed
    std::vector<int32_t> into_;    // the vertex that each has become part of, -1 for those that are left
    std::vector<char> on_border_;
    std::priority_queue<Contraction> queue_;
};

}  // namespace

MeshPart decimate(const Mesh& mesh, int64_t faces, double max_error) {
    STIPPLE_REQUIRE(faces >= 0, "decimate: {} faces", faces);
    STIPPLE_REQUIRE(max_error >= 0, "decimate: an error of at most {}", max_error);
    require_cpu_mesh("decimate", mesh);
    validate(mesh);
    Decimation decimation(mesh, max_error);
    while (decimation.left() > faces && decimation.step()) {
    }
    return decimation.finish(mesh);
}

}  // namespace stipple::geometry
