#pragma once
// A surface from oriented points: the level set of their winding number [Barill et al. 2018], by marching cubes.

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

struct ReconstructOptions {
    int resolution = 0;  // cells along the longest side of the points' bounds; 0: cells as wide as the points are apart
    int k = 16;          // neighbours that tell the area of a point
    float softening = 2.5f;    // in radii of the disc of a point: more is smoother, less keeps finer detail and noise
    float thinnest = 2.0f;     // spacings: sheets nearer than this are kept apart, 0 to 2; 0 lets them melt
    float accuracy = 2.0f;     // of the winding number
    double min_component = 0;  // connected parts of less than this share of the whole area are left out
};
/// `k` is the field "area_k", for it is often beside the k of normals.
const Fields& reconstruct_fields();

/// The surface of the points [n, 3] with outward normals [n, 3] of any length, contiguous, on the CPU.
///
/// Always closed, oriented and 2-manifold (by indices), normals outwards, whatever the points are: holes of the
/// sampling are closed by the smoothest continuation of the field, an open sheet becomes the outside of a bubble behind
/// it. Noise is averaged over about softening^2 points; sharp edges are rounded by about as much as the points are
/// apart. The level is the median of the field at the points, so that the surface runs through them.
///
/// Sheets that face away from each other (a thin wall) or towards each other (a narrow gap) nearer than `thinnest`
/// spacings are moved apart along their normals to that distance while the surface is made, and its vertices back: both
/// sides stay, even of a wall without thickness, whose free edge is rounded by up to two spacings. There the sides may
/// cut through each other by some tenths of a spacing. What several such layers in a stack make of each other is not
/// promised.
///
/// Only cells near the points, and where the surface goes from there, are looked at: time and memory grow with the
/// area, not with the volume. The mesh is in the frame of the points; the origin of marching_cubes applies within it.
/// Points with a non-finite coordinate or normal, or a normal of length 0, are left out. Deterministic, threads do not
/// matter. Throws Error{bad_argument} for wrong shapes and devices, options out of range, fewer than 4 points left,
/// points all in one place, and normals that point inwards. A handful of points far apart may make no surface: the mesh
/// is empty.
Mesh reconstruct_surface(View<const float, 2> points, View<const float, 2> normals,
                         const ReconstructOptions& options = {});

}  // namespace stipple::geometry
