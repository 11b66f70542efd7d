#pragma once
// Points at one place, or nearly so, made one. CPU.

#include "stipple/geometry/mesh_parts.h"

namespace stipple::geometry {

/// Which points stay, and what stands for the others.
struct UniquePoints {
    Array<int32_t, 1> kept;       // ascending: the points that stay
    Array<int32_t, 1> unique_of;  // [n] for each point its place in `kept`
};

/// The points [n, 3] of which no two are within `distance` of each other.
///
/// In the order of the points: one stays unless one that stays is within `distance` (Euclidean, in float64);
/// it is then the same as the first of those. So every point is within `distance` of what stands for it, points that
/// stay are further apart, and there are no chains. distance 0: points of equal coordinates, 0 and -0 being equal.
/// Non-finite points all stay.
///
/// Deterministic, threads do not matter. Throws Error{bad_argument} for other shapes, more than 2^31 - 1 points, and a
/// distance that is negative or not finite. O(n) for distance 0; else O(n log n) expected, for any distance and with
/// stray points far away.
UniquePoints unique_points(View<const float, 2> points, float distance = 0);

/// The cloud of the points that stay, with their attributes and the origin: select(cloud, unique_points(...).kept).
PointCloud dedupe_points(const PointCloud& cloud, float distance = 0);

/// The mesh of the vertices that stay, its faces moved onto them: part.new_vertices tells what stands for each old
/// vertex. All faces stay, those that have lost their area too (drop_degenerate_faces, drop_duplicate_faces). The
/// attributes of a vertex are those of the first at its place: where seams of texture or sharp normals matter, do not
/// merge them. Throws as unique_points and the functions of mesh_parts.h.
MeshPart dedupe_vertices(const Mesh& mesh, float distance = 0);

}  // namespace stipple::geometry
