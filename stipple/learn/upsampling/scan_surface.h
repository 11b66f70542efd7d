#pragma once
// The surface of a dense cloud, where there is no mesh: triangles between neighbouring points, good enough to measure
// how far upsampled points lie from it. No torch here.

#include "stipple/core/point_cloud.h"

namespace stipple::learn {

/// Triangles between the points [n, 3], which stay the corners.
///
/// Each point takes part in those that are its triangles in the Delaunay triangulation of its 24 nearest neighbours,
/// seen along the normal of the point (16 neighbours), unless the circle around one is larger than two spacings there
/// (a spacing: the root of the area that a point stands for, from the distance to the last neighbour). So holes and
/// borders stay open, where they are wider than four spacings; a cloud of independent points has such holes by chance,
/// one for some 10,000 points. A point without triangles, alone or on a line, is a triangle of three times itself:
/// found as what it is. Neighbours need not agree on a triangle: some overlap, a few percent of the area, all within
/// the bound below.
///
/// Of a smooth surface with radii of curvature of r or more, seen without noise, the triangles lie within 2 s^2 / r, s
/// the spacing (the height of a cap over a circle of radius 2 s); noise of the points adds at most that of the worst
/// corner. Sheets nearer to each other than two spacings grow together.
///
/// Points are finite and no two are the same: Error{bad_argument} for the former, triangles without area for the
/// latter. Deterministic, for any number of threads. O(n log n), some microseconds a point; 200 bytes of scratch a
/// point.
Mesh surface_of_points(Array<float, 2> points);

}  // namespace stipple::learn
