#pragma once
// Points on the surface of a mesh, uniform or evenly spread, and what the mesh carries at such points. CPU.

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// Points on a mesh: where they lie and what they lie on.
struct SurfaceSamples {
    Array<float, 2> points;        // [n, 3]
    Array<int32_t, 1> faces;       // [n]
    Array<float, 2> barycentrics;  // [n, 3] each in [0, 1], sum 1
};

/// n points, uniform by area, independent of each other. Faces without area are never chosen.
///
/// Sample i is a function of (mesh, seed, i) alone: any number of threads gives the same bits, and fewer samples are a
/// prefix of more. Probabilities are right to 2^-53 of the area (sums in float64), so any number of faces is fine.
/// n = 0 gives no samples, of any mesh. Throws Error{bad_argument} for n < 0, as require_mesh does, for a mesh on
/// another device, and when n > 0 and the mesh has no area. O(faces + n) expected, whatever the areas.
SurfaceSamples sample_surface(const MeshView& mesh, int64_t n, uint64_t seed);

/// Exactly n points spread evenly: Poisson disk by sample elimination [Yuksel 2015] from `oversampling` times as many
/// uniform ones (ops/poisson_disk.h), with the radius that the area gives: r_max = sqrt(area / (2 sqrt(3) n)). No two
/// samples could all be further apart than 2 r_max; the nearest two are 1.4 r_max to 1.6 r_max apart on smooth
/// surfaces at the default oversampling (tests/geometry/sample_surface_test.cpp).
///
/// Distances are Euclidean, not geodesic: walls thinner than r_max share their samples between both sides, and samples
/// on either side may then be nearer to each other than the above.
///
/// oversampling is at least 1; 5 is the paper's, more gives wider spacing for more time. Deterministic as
/// sample_surface. Throws as it does, and for more than 2^31 - 1 candidates.
SurfaceSamples sample_surface_poisson(const MeshView& mesh, int64_t n, uint64_t seed, double oversampling = 5);

/// Values of the vertices [v, c] at places of the surface, [n, c]: a + b1 (b - a) + b2 (c - a) in float64 for a face of
/// values a, b, c, so what is equal at the three corners stays so, and the vertices' positions give the points of
/// SurfaceSamples bit for bit. Rows of face -1 (a ray that hit nothing) are NaN. Throws Error{bad_argument} for other
/// shapes and for a face out of range.
Array<float, 2> interpolate(const MeshView& mesh, View<const int32_t, 1> faces, View<const float, 2> barycentrics,
                            View<const float, 2> vertex_values);
Array<float, 2> interpolate(const MeshView& mesh, const SurfaceSamples& samples, View<const float, 2> vertex_values);

/// The samples as a cloud, with the mesh's origin and all its attributes.
///
/// Attributes of the vertices: float32, float64 and colours are interpolated (integer colours rounded), `normal` is
/// brought back to unit length, all else (labels, ids, flags) is that of the nearest corner, the first of equally near
/// ones. Attributes of faces are those of the face; one that is named like one of the vertices is called face_NAME.
PointCloud cloud_of_samples(const Mesh& mesh, SurfaceSamples samples);

}  // namespace stipple::geometry
