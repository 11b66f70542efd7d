#pragma once
// Meshes of simple bodies about the origin: closed, 2-manifold, normals outwards (positive volume). CPU.
//
// All throw Error{bad_argument} for a size that is not above 0 and finite and for too few or too many segments.

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// An icosahedron whose faces are cut into four `subdivisions` times, all vertices on the sphere: 20 * 4^s faces.
/// 0 to 10 subdivisions.
Mesh sphere_mesh(double radius = 1, int subdivisions = 3);

/// A box of the given edges: 8 vertices, 12 faces.
Mesh cube_mesh(double x = 1, double y = 1, double z = 1);

/// Along z from -height / 2 to height / 2, with caps: 4 * segments faces. At least 3 segments.
Mesh cylinder_mesh(double radius = 0.5, double height = 1, int64_t segments = 64);

/// Along z from a disc at -height / 2 to the tip at height / 2: 2 * segments faces. At least 3 segments.
Mesh cone_mesh(double radius = 0.5, double height = 1, int64_t segments = 64);

/// Around z, a tube of radius `minor` whose middle is `major` away: 2 * around * across faces, vertex i * across + j at
/// angle i around z and j around the tube. minor < major; at least 3 segments each way.
Mesh torus_mesh(double major = 1, double minor = 0.25, int64_t around = 64, int64_t across = 32);

}  // namespace stipple::geometry
