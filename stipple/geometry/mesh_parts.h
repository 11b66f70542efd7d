#pragma once
// Parts of a mesh taken away or put together. CPU. Attributes of vertices and faces and the origin come along, order is
// kept, and what came from where is told. The mesh that is given is not changed.
//
// All throw Error{bad_argument} for a mesh that validate() refuses or that is not on the CPU. Vertices without faces
// stay unless a function says otherwise, and positions may be non-finite: nothing here computes with them except
// drop_degenerate_faces.

#include <span>

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// A mesh made from another, and where its parts came from.
struct MeshPart {
    Mesh mesh;
    Array<int32_t, 1> vertices;      // [new vertices] the old vertex that each was
    Array<int32_t, 1> faces;         // [new faces] the old face that each was
    Array<int32_t, 1> new_vertices;  // [old vertices] what each became, -1 when it is gone
};

/// The faces at `faces` (ascending or not, each as often as named), and all vertices.
MeshPart select_faces(const Mesh& mesh, View<const int32_t, 1> faces);

/// The vertices with keep[v] != 0, and the faces whose three vertices are kept.
MeshPart select_vertices(const Mesh& mesh, View<const uint8_t, 1> keep);

/// Without the vertices that no face has.
MeshPart drop_unreferenced_vertices(const Mesh& mesh);

/// Without faces that have a vertex twice or no area (three places on one line, in float64 arithmetic).
MeshPart drop_degenerate_faces(const Mesh& mesh);

/// Of faces with the same three vertices, in any order, the first. Unless `either_direction`, (a, b, c)
/// and (a, c, b) are two: the sides of a sheet.
MeshPart drop_duplicate_faces(const Mesh& mesh, bool either_direction = true);

/// All meshes in one, vertices and faces in the order of the meshes.
///
/// Origins: when all meshes with vertices share one it is kept and positions stay bit for bit. Otherwise the new origin
/// is choose_origin of all of them, and each coordinate is the world's, rounded once to float32 about it.
/// Attributes: the union by name. Rows of a mesh that lacks one are NaN (floats), 0 (integers) or false; their names
/// are in `filled`. Throws Error{bad_argument} when one name has different element types or numbers of components, and
/// for more than 2^31 - 1 vertices or faces. No meshes give an empty one.
Mesh merge_meshes(std::span<const Mesh* const> meshes, std::vector<std::string>* filled = nullptr);

}  // namespace stipple::geometry
