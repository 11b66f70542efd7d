#include "stipple/geometry/watertight/shell_projection.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/query/triangle.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kGrain = 1024;

Vec3d moved(const Vec3d& a, double t, const Vec3d& direction) {
    return a + t * direction;
}
double twice_area(const Vec3d& a, const Vec3d& b, const Vec3d& c) {
    return length(cross(b - a, c - a));
}

/// The nearest point of the input for each place: the face by the index, the point on it in double.
std::vector<Vec3d> nearest_points(const MeshIndex& index, const MeshView& mesh, const std::vector<Vec3d>& places) {
    const auto n = static_cast<int64_t>(places.size());
    Array<float, 2> queries({n, 3});
    Array<int32_t, 1> faces({n});
    for (int64_t i = 0; i < n; ++i)
        for (int k = 0; k < 3; ++k) queries.data()[3 * i + k] = static_cast<float>(places[i][k]);
    ClosestPoints found;
    found.faces = faces.view();
    closest_point(index, queries.view(), found);
    std::vector<Vec3d> nearest(places.size());
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t face = faces.data()[i];
            const Triangle t = {corner_of(mesh, face, 0), corner_of(mesh, face, 1), corner_of(mesh, face, 2)};
            const OnTriangle on = closest_on_triangle(places[i], t);
            nearest[i] = combine(t.a, on.v, t.b - t.a, on.w, t.c - t.a);
        }
    });
    return nearest;
}

/// Vertices at one place give way, each to its side, by half of the free ball around the place.
void separate(const std::vector<ShellSurface::Crowded>& crowded, double most, const MeshIndex& index,
              const MeshView& mesh, std::vector<Vec3d>& places, std::vector<Vec3d>& nearest) {
    std::vector<Vec3d> apart;
    for (const auto& [vertex, pull] : crowded) {
        const Vec3d direction = {pull[0], pull[1], pull[2]};
        const double room = std::min(most, length(places[vertex] - nearest[vertex]) / 2);
        if (length(direction) > 0) places[vertex] = moved(places[vertex], room / length(direction), direction);
        apart.push_back(places[vertex]);
    }
    const std::vector<Vec3d> found = nearest_points(index, mesh, apart);
    for (size_t i = 0; i < crowded.size(); ++i) nearest[crowded[i].vertex] = found[i];
}

/// Along the diagonal that is short and has the input on the same side at both ends: along creases, not across. Not
/// where that would leave a face without area.
void cut_quads(const ShellSurface& surface, const std::vector<Vec3d>& normals, double step, ShellMesh& mesh) {
    const auto& p = mesh.positions;
    const auto cost = [&](int32_t a, int32_t b, int32_t c, int32_t d) {  // of cutting from a to c
        const double least = std::min(twice_area(p[a], p[b], p[c]), twice_area(p[a], p[c], p[d]));
        const double flat = least < 1e-3 * step * step ? 100 * step : 0;
        return length(p[a] - p[c]) * (2 - dot(normals[a], normals[c])) + flat;
    };
    mesh.triangles.resize(2 * surface.quads.size());
    parallel_for(static_cast<int64_t>(surface.quads.size()), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const auto& [a, b, c, d] = surface.quads[static_cast<size_t>(i)];
            const bool ac = cost(a, b, c, d) <= cost(b, c, d, a);
            mesh.triangles[static_cast<size_t>(2 * i)] = {a, b, ac ? c : d};
            mesh.triangles[static_cast<size_t>(2 * i + 1)] = {ac ? a : b, c, d};
        }
    });
    mesh.triangles.insert(mesh.triangles.end(), surface.triangles.begin(), surface.triangles.end());
}

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
                if (!lid[a]) continue;
                for (int k = 0; k < 3; ++k) sums[a][k] += mesh.positions[b][k];
                sums[a][3] += 1;
            }
        }
        for (size_t i = 0; i < lid.size(); ++i)
            if (lid[i]) mesh.positions[i] = {sums[i][0] / sums[i][3], sums[i][1] / sums[i][3], sums[i][2] / sums[i][3]};
    }
}

std::vector<Vec3d> places_in_mesh(const ShellSurface& surface, const ShellVoxels& voxels) {
    std::vector<Vec3d> places(surface.places.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = moved(voxels.low, voxels.step, surface.places[i]);
    return places;
}

}  // namespace

ShellMesh project_surface(const ShellSurface& surface, const ShellVoxels& voxels, const MeshView& mesh, double offset) {
    const MeshIndex index(mesh);
    std::vector<Vec3d> places = places_in_mesh(surface, voxels);
    std::vector<Vec3d> nearest = nearest_points(index, mesh, places);
    separate(surface.crowded, voxels.step / 4, index, mesh, places, nearest);
    ShellMesh shell;
    shell.positions.resize(places.size());
    std::vector<Vec3d> normals(places.size());
    parallel_for(static_cast<int64_t>(places.size()), kGrain, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            const Vec3d away = places[i] - nearest[i];
            normals[i] = moved({}, 1 / length(away), away);  // places are free: never 0
            shell.positions[i] = surface.lid[i] ? places[i] : moved(nearest[i], offset, normals[i]);
        }
    });
    cut_quads(surface, normals, voxels.step, shell);
    smooth_lids(surface.lid, shell);
    return shell;
}

ShellMesh place_surface(const ShellSurface& surface, const ShellVoxels& voxels) {
    ShellMesh placed;
    placed.positions = places_in_mesh(surface, voxels);
    placed.triangles = surface.triangles;
    for (const auto& [a, b, c, d] : surface.quads) {
        placed.triangles.push_back({a, b, c});
        placed.triangles.push_back({a, c, d});
    }
    return placed;
}

}  // namespace stipple::geometry
