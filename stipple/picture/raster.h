#pragma once
// Triangles drawn into a visibility buffer.

#include <vector>

#include "stipple/picture/camera.h"
#include "stipple/picture/visibility.h"

namespace stipple::picture {

/// Draws every triangle with finite corners, clipped at the near plane; both sides are drawn. Neighbours that share an
/// edge leave no gap. Returns the number of triangles left out because a corner is not finite. Memory is bounded for
/// any number of triangles. Indices must be valid: see validate(Mesh).
int64_t draw_triangles(Visibility& target, const Mesh& mesh, const Camera& camera);

/// Unit normals per vertex: the attribute `normal` when there is one, else the area-weighted mean over the faces
/// around; zero where there are none. World axes.
std::vector<Vec3f> vertex_normals(const Mesh& mesh);

}  // namespace stipple::picture
