#pragma once
// What is wrong with a mesh, counted: the judge of watertight() and of `stipple mesh info`.

#include <string>

#include "stipple/core/fields.h"
#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

struct MeshCheck {
    int64_t boundary_edges = 0;        // of one face
    int64_t nonmanifold_edges = 0;     // of more than two faces
    int64_t misoriented_edges = 0;     // whose two faces run along it the same way
    int64_t nonmanifold_vertices = 0;  // whose faces do not form one fan or one open fan
    int64_t degenerate_faces = 0;      // with a vertex twice, or without area
    int64_t duplicate_faces = 0;       // with the vertices of an earlier face
    int64_t unreferenced_vertices = 0;
    int64_t components = 0;       // of faces connected by edges
    int64_t euler = 0;            // vertices in use - edges + faces
    double area = 0, volume = 0;  // volume by the divergence theorem; means something for closed oriented meshes

    bool is_closed() const { return boundary_edges == 0; }
    bool is_manifold() const { return nonmanifold_edges == 0 && nonmanifold_vertices == 0; }
    bool is_oriented() const { return misoriented_edges == 0; }
    /// Closed, 2-manifold, oriented and not empty.
    bool is_watertight(const MeshView& mesh) const {
        return mesh.faces() > 0 && is_closed() && is_manifold() && is_oriented();
    }
};

/// All but the volume, which is to be reported only of meshes that have one (tasks/mesh_facts.h).
const Fields& mesh_check_fields();

/// By indices: vertices at one place are different unless merged. A face with a vertex twice has its edges like any
/// other, among them one from the vertex to itself, so that no mesh with such a face is watertight. "Without area"
/// means exactly 0 in float64. Two faces with the same vertices turned against each other are closed and manifold: they
/// count as duplicate. CPU only; throws as require_mesh does. O(m log d) for vertices of d faces; threads do not
/// matter.
MeshCheck check_mesh(const MeshView& mesh);

}  // namespace stipple::geometry
