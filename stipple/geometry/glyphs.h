#pragma once
// Points as bodies: spheres and discs, to look at or to cast rays at. CPU.

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

/// A sphere (sphere_mesh of `subdivisions`) of radius radii[i] about every point [n, 3].
///
/// Every point has as many vertices and faces as every other, in the order of the points: face f belongs to point
/// f / (faces / n), which turns the hits of cast_rays.h into hits of points. Throws Error{bad_argument} for other
/// shapes, other devices, non-finite points, radii that are not above 0 and finite, and more than 2^31 - 1 vertices or
/// faces.
Mesh sphere_glyphs(View<const float, 2> points, View<const float, 1> radii, int subdivisions = 1);

/// A disc (regular polygon of `segments` corners around its middle) of radius radii[i] and normal normals[i] [n, 3] at
/// every point: segments + 1 vertices and segments faces each, normals on the side of the given one. Throws as
/// sphere_glyphs does, and for normals without length and fewer than 3 segments.
Mesh surfel_glyphs(View<const float, 2> points, View<const float, 2> normals, View<const float, 1> radii,
                   int64_t segments = 12);

}  // namespace stipple::geometry
