#pragma once
// Distances between clouds and meshes.

#include "stipple/geometry/mesh_index.h"
#include "stipple/metrics/nearest.h"

namespace stipple::metrics {

/// A mesh that is asked many times, in its own frame: positions relative to mesh.vertices.origin. CPU, indexed on
/// `device`.
class IndexedMesh {
public:
    /// Throws Error{bad_argument} as geometry::require_mesh does and for a mesh without faces. The mesh must outlive
    /// it.
    explicit IndexedMesh(const Mesh& mesh, Device device = {});
    explicit IndexedMesh(Mesh&& mesh, Device device = {}) = delete;

    const Mesh& mesh() const { return *mesh_; }
    const geometry::MeshIndex& index() const { return index_; }
    Frame frame() const { return {mesh_->vertices.origin, 1}; }
    double area() const { return area_; }

private:
    const Mesh* mesh_;
    geometry::MeshIndex index_;
    double area_ = 0;
};

struct FaceDistances {
    Array<double, 1> distance;  // [n] not squared; +infinity for a non-finite point
    Array<int32_t, 1> face;     // [n] the face that is nearest; -1 for a non-finite point
    Array<double, 2> nearest;   // [n, 3] the point of it
};

/// From every point, in mesh.frame(), to the nearest point of the mesh: "P2F", "point to surface".
///
/// The face is chosen in float32 (geometry/closest_point.h), distance and point are computed in float64 on that face:
/// points that lie on the surface have distances that mean something.
FaceDistances point_to_face(const IndexedMesh& mesh, const Points& points);

/// From the mesh to the cloud: distances of `samples` points drawn uniformly by area, seeded, to the nearest point of
/// `points` (in mesh.frame()). What it measures is also limited by the spacing of the cloud.
Distances face_to_point(const IndexedMesh& mesh, const Points& points, int64_t samples, uint64_t seed,
                        Device device = {});

}  // namespace stipple::metrics
