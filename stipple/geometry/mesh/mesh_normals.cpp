#include "stipple/geometry/mesh_normals.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/ops/common/require.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kFaces = 4096;  // that a thread takes at a time

double area_of(const MeshView& mesh, int64_t face) {
    return 0.5 * length(area_vector(mesh, face));
}

/// The angle at a corner. atan2 is exact to rounding for the sharpest and the flattest, where acos is not.
double angle_at(const MeshView& mesh, int64_t face, int corner) {
    const Vec3d at = corner_of(mesh, face, corner);
    const Vec3d a = corner_of(mesh, face, (corner + 1) % 3) - at, b = corner_of(mesh, face, (corner + 2) % 3) - at;
    return std::atan2(length(cross(a, b)), dot(a, b));
}

/// Corners (3 * face + corner) by the vertex they are at, ascending: those of vertex v are [offsets[v], offsets[v +
/// 1]).
struct CornersOfVertex {
    std::vector<int64_t> offsets, corners;

    explicit CornersOfVertex(const MeshView& mesh)
        : offsets(static_cast<size_t>(mesh.vertices.size(0)) + 1, 0), corners(3 * static_cast<size_t>(mesh.faces())) {
        const int32_t* vertex = mesh.triangles.data();
        const int64_t count = 3 * mesh.faces(), n = mesh.vertices.size(0);
        for (int64_t i = 0; i < count; ++i) ++offsets[vertex[i]];
        std::exclusive_scan(offsets.begin(), offsets.end(), offsets.begin(), int64_t{0});
        for (int64_t i = 0; i < count; ++i) corners[offsets[vertex[i]]++] = i;
        for (int64_t v = n; v > 0; --v) offsets[v] = offsets[v - 1];  // each had moved to its end
        offsets[0] = 0;
    }
};

}  // namespace

void face_normals(const MeshView& mesh, View<float, 2> normals) {
    require_cpu_mesh("face_normals", mesh);
    ops::require_output<float, 2>("face_normals", "normals", normals, {mesh.faces(), 3}, {});
    parallel_for(mesh.faces(), kFaces, [&](int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; ++f) store(unit(area_vector(mesh, f)), normals.data() + 3 * f);
    });
}

void vertex_normals(const MeshView& mesh, View<float, 2> normals, NormalWeights weights) {
    require_cpu_mesh("vertex_normals", mesh);
    const int64_t n = mesh.vertices.size(0);
    ops::require_output<float, 2>("vertex_normals", "normals", normals, {n, 3}, {});
    const CornersOfVertex around(mesh);
    std::vector<Vec3d> of_face(static_cast<size_t>(mesh.faces()));
    parallel_for(mesh.faces(), kFaces, [&](int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; ++f) {
            of_face[f] = area_vector(mesh, f);
            if (weights != NormalWeights::area) of_face[f] = unit(of_face[f]);
        }
    });
    parallel_for(n, kFaces, [&](int64_t begin, int64_t end) {
        for (int64_t v = begin; v < end; ++v) {
            Vec3d sum;
            for (int64_t i = around.offsets[v]; i < around.offsets[v + 1]; ++i) {
                const int64_t face = around.corners[i] / 3;
                const int corner = static_cast<int>(around.corners[i] % 3);
                const double weight = weights == NormalWeights::angle ? angle_at(mesh, face, corner) : 1;
                sum = sum + weight * of_face[face];
            }
            store(unit(sum), normals.data() + 3 * v);
        }
    });
}

void face_areas(const MeshView& mesh, View<float, 1> areas) {
    require_cpu_mesh("face_areas", mesh);
    ops::require_output<float, 1>("face_areas", "areas", areas, {mesh.faces()}, {});
    parallel_for(mesh.faces(), kFaces, [&](int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; ++f) areas.data()[f] = static_cast<float>(area_of(mesh, f));
    });
}

double surface_area(const MeshView& mesh) {
    require_cpu_mesh("surface_area", mesh);
    std::vector<double> parts(static_cast<size_t>((mesh.faces() + kFaces - 1) / kFaces), 0);
    parallel_for(mesh.faces(), kFaces, [&](int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; ++f) parts[begin / kFaces] += area_of(mesh, f);
    });
    return std::accumulate(parts.begin(), parts.end(), 0.0);
}

}  // namespace stipple::geometry
