#pragma once

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// Points on a mesh: where they lie and what they lie on. CPU.
struct SurfaceSamples {
    Array<float, 2> points;        // [n, 3]
    Array<int32_t, 1> faces;       // [n]
    Array<float, 2> barycentrics;  // [n, 3]
};

/// n points, uniform by area, independent of each other. Faces without area are never chosen. The same seed gives the
/// same points on any number of threads. Throws Error{bad_argument} when n > 0 and the mesh has no area. O(faces + n).
SurfaceSamples sample_surface(const MeshView& mesh, int64_t n, uint64_t seed);

/// Exactly n points spread evenly: Poisson disk by sample elimination [Yuksel 2015] from `oversampling` times as many
/// uniform ones (ops/poisson_disk.h).
SurfaceSamples sample_surface_poisson(const MeshView& mesh, int64_t n, uint64_t seed, double oversampling = 5);

/// An attribute of the vertices [v, c] at the samples, [n, c].
Array<float, 2> interpolate(const MeshView& mesh, const SurfaceSamples& samples, View<const float, 2> vertex_values);

}  // namespace stipple::geometry
