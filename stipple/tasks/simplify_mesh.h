#pragma once
// Fewer faces for nearly the same surface, and how near it is.

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"

namespace stipple::tasks {

/// One of the two says how many faces are wanted.
struct SimplifyMeshOptions {
    int64_t faces = 0;
    double ratio = 0;  // of those there are
};
const Fields& simplify_mesh_fields();
/// Throws Error{bad_argument} for numbers out of range, and unless one of the two is given.
void require_valid(const SimplifyMeshOptions& options);

/// How far the vertices of the old mesh are from the new surface.
struct MeshDeviation {
    double max = 0, rms = 0;
};

struct SimplifiedMesh {
    Mesh mesh = {};
    int64_t wanted = 0;  // faces; there may be more, where fewer would break the surface
    int64_t faces_before = 0, faces = 0, vertices = 0;
    MeshDeviation deviation = {};  // 0 where no face is left
};
const Fields& simplified_mesh_fields();

/// By geometry::decimate(). Throws as require_valid() and it do.
SimplifiedMesh simplify_mesh(const Mesh& mesh, const SimplifyMeshOptions& options);

}  // namespace stipple::tasks
