#include "stipple/geometry/shell_projection.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/triangle.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kGrain = 1024;

using Edge = std::pair<int32_t, int32_t>;  // lower vertex first

double dot(const Double3& a, const Double3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Double3 minus(const Double3& a, const Double3& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Double3 middle(const Double3& a, const Double3& b) {
    return {(a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2};
}
double distance(const Double3& a, const Double3& b) {
    return std::sqrt(dot(minus(a, b), minus(a, b)));
}
Double3 moved(const Double3& a, double t, const Double3& direction) {
    return {a[0] + t * direction[0], a[1] + t * direction[1], a[2] + t * direction[2]};
}

Vec3 corner_of(const MeshView& mesh, int64_t face, int i) {
    const float* p = mesh.vertices.data() + 3 * int64_t{mesh.triangles.data()[3 * face + i]};
    return {p[0], p[1], p[2]};
}

/// The nearest point of the input for each place: the face by the index, the point on it in double.
std::vector<Double3> nearest_points(const MeshIndex& index, const MeshView& mesh, const std::vector<Double3>& places) {
    const auto n = static_cast<int64_t>(places.size());
    Array<float, 2> queries({n, 3});
    Array<int32_t, 1> faces({n});
    for (int64_t i = 0; i < n; ++i)
        for (int k = 0; k < 3; ++k) queries.data()[3 * i + k] = static_cast<float>(places[i][k]);
    ClosestPoints found;
    found.faces = faces.view();
    closest_point(index, queries.view(), found);
    std::vector<Double3> nearest(places.size());
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t face = faces.data()[i];
            const Triangle t = {corner_of(mesh, face, 0), corner_of(mesh, face, 1), corner_of(mesh, face, 2)};
            const OnTriangle on = closest_on_triangle({places[i][0], places[i][1], places[i][2]}, t);
            const Vec3 p = combine(t.a, on.v, t.b - t.a, on.w, t.c - t.a);
            nearest[i] = {p.x, p.y, p.z};
        }
    });
    return nearest;
}

class Projection {
public:
    Projection(const MeshView& mesh, double step, double offset)
        : mesh_(mesh), index_(mesh), step_(step), offset_(offset) {}

    ShellMesh run(const ShellSurface& surface, const ShellVoxels& voxels) {
        starts_ = place_surface(surface, voxels).positions;
        lid_ = surface.lid;
        std::vector<Double3> nearest = nearest_points(index_, mesh_, starts_);
        separate(surface.crowded, nearest);
        positions_.resize(starts_.size());
        normals_.resize(starts_.size());
        for (size_t i = 0; i < starts_.size(); ++i) place(i, nearest[i]);
        cut_quads(surface);
        for (int round = 0; round < kRounds && divide_edges(); ++round) {
        }
        return {std::move(positions_), std::move(triangles_)};
    }

private:
    static constexpr int kRounds = 4;

    /// Vertices at one place give way, each to its side, by half of the free ball around the place.
    void separate(const std::vector<ShellSurface::Crowded>& crowded, std::vector<Double3>& nearest) {
        std::vector<Double3> places;
        for (const auto& [vertex, pull] : crowded) {
            const Double3 direction = {pull[0], pull[1], pull[2]};
            const double length = std::sqrt(dot(direction, direction));
            const double room = std::min(0.25 * step_, distance(starts_[vertex], nearest[vertex]) / 2);
            if (length > 0) starts_[vertex] = moved(starts_[vertex], room / length, direction);
            places.push_back(starts_[vertex]);
        }
        const std::vector<Double3> found = nearest_points(index_, mesh_, places);
        for (size_t i = 0; i < crowded.size(); ++i) nearest[crowded[i].vertex] = found[i];
    }

    void place(size_t vertex, const Double3& nearest) {
        const Double3 away = minus(starts_[vertex], nearest);
        const double length = std::sqrt(dot(away, away));
        normals_[vertex] = moved({}, length > 0 ? 1 / length : 0, away);
        positions_[vertex] = lid_[vertex] ? starts_[vertex] : moved(nearest, offset_, normals_[vertex]);
    }

    /// Along the diagonal that is short and has the input on the same side at both ends: along creases, not across.
    void cut_quads(const ShellSurface& surface) {
        triangles_ = surface.triangles;
        triangles_.reserve(triangles_.size() + 2 * surface.quads.size());
        const auto cost = [&](int32_t a, int32_t b) {
            return distance(positions_[a], positions_[b]) * (2 - dot(normals_[a], normals_[b]));
        };
        for (const auto& [a, b, c, d] : surface.quads) {
            if (cost(a, c) <= cost(b, d)) {
                triangles_.push_back({a, b, c});
                triangles_.push_back({a, c, d});
            } else {
                triangles_.push_back({a, b, d});
                triangles_.push_back({b, c, d});
            }
        }
    }

    /// An edge of even ground lies on the input as its ends do.
    bool is_suspect(int32_t a, int32_t b) const {
        if (lid_[a] || lid_[b]) return false;
        return dot(normals_[a], normals_[b]) < 0.9 || distance(positions_[a], positions_[b]) > 1.8 * step_;
    }

    /// Divides the edges whose middles are away from the input; false where there is none.
    bool divide_edges() {
        std::vector<Edge> edges;
        for (const auto& triangle : triangles_)
            for (int i = 0; i < 3; ++i) {
                const int32_t a = triangle[i], b = triangle[(i + 1) % 3];
                if (a < b && is_suspect(a, b)) edges.push_back({a, b});  // the other face has it the other way
            }
        std::sort(edges.begin(), edges.end());
        std::vector<Double3> middles;
        for (const auto& [a, b] : edges) middles.push_back(middle(positions_[a], positions_[b]));
        const std::vector<Double3> nearest = nearest_points(index_, mesh_, middles);
        size_t kept = 0;
        std::vector<Double3> places;
        for (size_t i = 0; i < edges.size(); ++i) {
            if (distance(middles[i], nearest[i]) < 0.15 * step_ + offset_) continue;
            const auto [a, b] = edges[i];
            // The middle of the places the ends came from is as free as they are. Where these are close together the
            // ends went to two sides of a crease, and the ball that touches both sides is free, the middle in it.
            const bool crease = distance(starts_[a], starts_[b]) < 0.3 * step_;
            places.push_back(crease ? middles[i] : middle(starts_[a], starts_[b]));
            edges[kept++] = edges[i];
        }
        edges.resize(kept);
        if (kept == 0) return false;
        const std::vector<Double3> found = nearest_points(index_, mesh_, places);
        const auto first = static_cast<int32_t>(starts_.size());
        for (size_t i = 0; i < kept; ++i) {
            starts_.push_back(places[i]);
            lid_.push_back(0);
            positions_.emplace_back();
            normals_.emplace_back();
            place(starts_.size() - 1, found[i]);
        }
        divide_faces(edges, first);
        return true;
    }

    /// Faces with edge i of `edges` get vertex first + i on it.
    void divide_faces(const std::vector<Edge>& edges, int32_t first) {
        const auto vertex_on = [&](int32_t a, int32_t b) {
            const Edge edge = {std::min(a, b), std::max(a, b)};
            const auto at = std::lower_bound(edges.begin(), edges.end(), edge);
            return at != edges.end() && *at == edge ? first + static_cast<int32_t>(at - edges.begin()) : -1;
        };
        std::vector<std::array<int32_t, 3>> divided;
        divided.reserve(triangles_.size() + 2 * edges.size());
        for (const auto& t : triangles_) {
            std::array<int32_t, 3> on;
            int cuts = 0;
            for (int i = 0; i < 3; ++i) {
                on[i] = vertex_on(t[i], t[(i + 1) % 3]);
                cuts += on[i] >= 0;
            }
            if (cuts == 0) {
                divided.push_back(t);
            } else if (cuts == 3) {
                for (int i = 0; i < 3; ++i) divided.push_back({t[i], on[i], on[(i + 2) % 3]});
                divided.push_back(on);
            } else {
                int i = 0;  // the cut edge whose predecessor is whole
                while (on[i] < 0 || on[(i + 2) % 3] >= 0) ++i;
                const int32_t a = t[i], b = t[(i + 1) % 3], c = t[(i + 2) % 3], p = on[i], q = on[(i + 1) % 3];
                if (cuts == 1) {
                    divided.push_back({a, p, c});
                    divided.push_back({p, b, c});
                } else {
                    divided.push_back({p, b, q});
                    if (distance(positions_[a], positions_[q]) < distance(positions_[p], positions_[c])) {
                        divided.push_back({a, p, q});
                        divided.push_back({a, q, c});
                    } else {
                        divided.push_back({a, p, c});
                        divided.push_back({p, q, c});
                    }
                }
            }
        }
        triangles_.swap(divided);
    }

    const MeshView& mesh_;
    MeshIndex index_;
    double step_, offset_;
    std::vector<Double3> starts_;     // free places
    std::vector<Double3> positions_;  // on the input, but for the offset
    std::vector<Double3> normals_;    // away from the input
    std::vector<uint8_t> lid_;
    std::vector<std::array<int32_t, 3>> triangles_;
};

/// Vertices of lids to the mean of their neighbours, again and again.
void smooth_lids(const std::vector<uint8_t>& lid, ShellMesh& mesh) {
    constexpr int kRounds = 20;
    if (std::find(lid.begin(), lid.end(), 1) == lid.end()) return;
    std::vector<std::array<double, 4>> sums(lid.size());
    for (int round = 0; round < kRounds; ++round) {
        for (auto& sum : sums) sum = {};
        for (const auto& triangle : mesh.triangles) {
            for (int i = 0; i < 3; ++i) {  // each edge comes in both directions
                const int32_t a = triangle[i], b = triangle[(i + 1) % 3];
                if (a >= static_cast<int32_t>(lid.size()) || !lid[a]) continue;
                for (int k = 0; k < 3; ++k) sums[a][k] += mesh.positions[b][k];
                sums[a][3] += 1;
            }
        }
        for (size_t i = 0; i < lid.size(); ++i)
            if (lid[i]) mesh.positions[i] = {sums[i][0] / sums[i][3], sums[i][1] / sums[i][3], sums[i][2] / sums[i][3]};
    }
}

}  // namespace

ShellMesh project_surface(const ShellSurface& surface, const ShellVoxels& voxels, const MeshView& mesh, double offset) {
    ShellMesh projected = Projection(mesh, voxels.step, offset).run(surface, voxels);
    smooth_lids(surface.lid, projected);
    return projected;
}

ShellMesh place_surface(const ShellSurface& surface, const ShellVoxels& voxels) {
    ShellMesh placed;
    placed.positions.reserve(surface.places.size());
    for (const Double3& place : surface.places) placed.positions.push_back(moved(voxels.low, voxels.step, place));
    placed.triangles = surface.triangles;
    for (const auto& [a, b, c, d] : surface.quads) {
        placed.triangles.push_back({a, b, c});
        placed.triangles.push_back({a, c, d});
    }
    return placed;
}

}  // namespace stipple::geometry
