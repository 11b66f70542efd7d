#pragma once
// Normals and areas of the faces and vertices of a mesh. CPU; float64 inside, results float32.

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// The normal of every face, [m, 3] of unit length by the right-hand rule; (0, 0, 0) for faces without area.
///
/// Throws Error{bad_argument} as require_mesh does, for a mesh on another device and for an output of another shape; so
/// do the other functions here. O(m).
void face_normals(const MeshView& mesh, View<float, 2> normals);

/// How the faces around a vertex are averaged.
/// uniform  every face counts the same
/// area     by area
/// angle    by the angle at the vertex [Thurmer and Wuthrich 1998]: does not depend on how the surface is cut into
/// faces
enum class NormalWeights { uniform, area, angle };

/// The normal of every vertex, [n, 3] of unit length: the weighted mean of its faces' normals. (0, 0, 0) where no face
/// with area meets, or where their normals cancel. Summed in the order of the faces: threads do not matter. O(n + m).
void vertex_normals(const MeshView& mesh, View<float, 2> normals, NormalWeights weights = NormalWeights::angle);

/// The area of every face, [m].
void face_areas(const MeshView& mesh, View<float, 1> areas);

/// The area of the mesh, summed in float64 in an order that does not depend on threads.
double surface_area(const MeshView& mesh);

}  // namespace stipple::geometry
