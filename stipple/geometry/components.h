#pragma once
// Connected parts of a mesh. CPU.

#include "stipple/geometry/mesh_parts.h"
#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// What connects two faces: an edge (of any number of faces), or one vertex. By indices: vertices at one place are
/// different unless merged (dedupe_vertices).
enum class Connection { edges, vertices };

struct Components {
    Array<int32_t, 1> of_face;    // [m] numbered from 0 in the order of their first faces
    Array<int32_t, 1> of_vertex;  // [n] the lowest of its faces' components, -1 without faces
    std::vector<int64_t> faces;   // of each component
    std::vector<double> areas;    // of each component

    int64_t size() const { return static_cast<int64_t>(faces.size()); }
};

/// Throws Error{bad_argument} as require_mesh does and for a mesh on another device. O(n + m).
Components connected_components(const MeshView& mesh, Connection connection = Connection::edges);

/// What remove_small_components keeps: all of the conditions must hold.
struct ComponentLimits {
    int64_t min_faces = 0;
    double min_area = 0;
    int64_t largest = INT64_MAX;  // so many of the largest by area, the first of equal ones
    Connection connection = Connection::edges;
};

/// Without the components beyond the limits and without the vertices that only they had; vertices that had no face
/// before stay. Throws as connected_components.
MeshPart remove_small_components(const Mesh& mesh, const ComponentLimits& limits);

}  // namespace stipple::geometry
