#pragma once

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

struct SmoothOptions {
    int iterations = 10;
    /// How far a vertex moves towards the mean of its neighbours in one iteration, 0 to 1.
    double step = 0.5;
    /// A second step of each iteration, 0 or negative: inflates what the first has shrunk [Taubin 1995]. -0.53 goes
    /// with a step of 0.5; 0 is plain Laplacian smoothing, which shrinks.
    double back_step = 0;
    /// Weights of neighbours: all the same, or the cotangents of the angles opposite the edge [Pinkall and Polthier
    /// 1993], which do not pull vertices along the surface. Those of angles so obtuse that the sum is negative count 0.
    bool cotangent = false;
    /// Vertices on an edge of one face stay where they are; otherwise open borders shrink.
    bool fix_boundary = true;
};

/// Moves the vertices of a mesh, positions [n, 3] of `mesh` into `smoothed` [n, 3] (which may be the same memory).
///
/// All vertices move at once from the places of the last step: threads and order do not matter. float64 inside. A
/// vertex without neighbours stays. Cotangents are those of the mesh as given, for all iterations. CPU. Throws
/// Error{bad_argument} as require_mesh does, for options out of their range, another device and another shape.
/// O(iterations * m).
void smooth_mesh(const MeshView& mesh, View<float, 2> smoothed, const SmoothOptions& options = {});

}  // namespace stipple::geometry
