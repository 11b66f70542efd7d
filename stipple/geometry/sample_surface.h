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
/// uniform ones (ops/poisson_disk.h), after which points in the closest pairs move into the widest gaps.
///
/// On a plane of the mesh's area no n points are all further apart than 2 r_max, r_max = sqrt(area / (2 sqrt(3) n)).
/// The nearest two samples are at least 0.7 of that apart (0.715, where the moving stops, on most meshes; 8192 samples
/// of 157 scanned and designed ones: 0.700 to 0.715) unless sheets are much nearer to each other. Distances are
/// Euclidean, not geodesic: the two sides of a wall thinner than 2 r_max share their room, and two sheets at one place
/// bring the samples down to about 0.5.
///
/// oversampling is at least 1; 5 is the paper's. Deterministic as sample_surface, but fewer samples are no prefix.
/// Throws as it does, and for more than 715 827 882 candidates. About O(n log n) for a given oversampling.
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
