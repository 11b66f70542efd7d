#pragma once

#include <limits>

#include "stipple/geometry/mesh_parts.h"

namespace stipple::geometry {

/// A mesh of at most `faces` faces near the surface of another: edges are contracted in the order of the error that
/// this makes, measured by quadrics [Garland and Heckbert 1997], each to the place where it is smallest.
///
/// What is manifold stays so, closed stays closed and of the same genus, borders are held by planes of their own, and
/// no face turns over. A contraction that would break one of these is left out, so more faces may be left: components
/// shrink to a tetrahedron, a border to a triangle, not to nothing. Faces that have a vertex twice are left out first.
///
/// max_error bounds each contraction: the root of the mean squared distance, weighted by area, from the new place to
/// the planes of all faces it has come to stand for. The surface moves by about as much, at single places by some times
/// that. With faces = 0 it alone says where to stop.
///
/// The vertex that stays, with its attributes, is the lower of the two; its position is new. part.new_vertices tells
/// which vertex each old one became part of; vertices without faces stay as they are. Faces keep their attributes.
///
/// Deterministic: ties go to the lowest vertices. CPU, one thread. Throws Error{bad_argument} for faces < 0, a
/// max_error that is negative or NaN, and as require_mesh does. O(m log m).
MeshPart decimate(const Mesh& mesh, int64_t faces, double max_error = std::numeric_limits<double>::infinity());

}  // namespace stipple::geometry
