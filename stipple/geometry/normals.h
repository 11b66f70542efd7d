#pragma once

#include "stipple/core/device.h"
#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// The normal of every point [n, 3]: the direction in which its k nearest neighbours (itself included) vary least.
///
/// normals     [n, 3] of unit length, sign arbitrary but the same on CPU and CUDA and for any number of threads
/// curvatures  [n] smallest eigenvalue over their sum, 0 flat to 1/3; an empty view when not wanted
///
/// Fewer than three neighbours that span a plane give (0, 0, 0) and NaN, and so do non-finite points. k is at least 3;
/// a cloud of fewer points uses all of them. Eigenvectors in float64 by closed form. CPU and CUDA.
void estimate_normals(View<const float, 2> points, View<float, 2> normals, View<float, 1> curvatures, int k = 16,
                      Stream stream = {});

/// Turns normals so that they point towards `viewpoint` (relative to the cloud's origin). CPU and CUDA.
void orient_towards(View<const float, 2> points, View<float, 2> normals, const std::array<double, 3>& viewpoint,
                    Stream stream = {});

/// Turns normals so that neighbours agree [Hoppe et al. 1992]: along a minimum spanning tree of the k-nearest-neighbour
/// graph with weights 1 - |n_i . n_j|, from the point furthest out, whose normal points outwards; each connected part
/// on its own. Deterministic. CPU. O(n k log n).
void orient_consistently(View<const float, 2> points, View<float, 2> normals, int k = 16);

/// Of meshes, CPU: [m, 3] unit length, (0, 0, 0) for faces without area.
void face_normals(const MeshView& mesh, View<float, 2> normals);
enum class NormalWeights { uniform, area, angle };
void vertex_normals(const MeshView& mesh, View<float, 2> normals, NormalWeights weights = NormalWeights::angle);

}  // namespace stipple::geometry
