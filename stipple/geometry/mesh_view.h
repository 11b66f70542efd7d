#pragma once
// MeshView: what the functions of geometry take. Positions are relative to the mesh's origin, and so are queries.

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// vertices [n, 3], triangles [m, 3] with indices in [0, n), both contiguous and on one device.
struct MeshView {
    View<const float, 2> vertices;
    View<const int32_t, 2> triangles;

    MeshView(View<const float, 2> positions, View<const int32_t, 2> corners)
        : vertices(positions), triangles(corners) {}
    MeshView(const Mesh& mesh) : MeshView(mesh.vertices.positions.view(), mesh.triangles.view()) {}  // NOLINT

    int64_t faces() const { return triangles.size(0); }
    Device device() const { return triangles.device(); }
};

/// Throws Error{bad_argument} beginning with `who` for other shapes, strides and mixed devices, more than 2^31 - 1
/// vertices or faces, and on the CPU for an index out of range or a non-finite vertex of a face (a vertex that no face
/// has may be anything). On CUDA the contents are the caller's promise.
void require_mesh(const char* who, const MeshView& mesh);

}  // namespace stipple::geometry
