#pragma once
// Triangles drawn into a visibility buffer.

#include <vector>

#include "stipple/picture/camera.h"
#include "stipple/picture/render/visibility.h"

namespace stipple::picture {

/// Draws every triangle with finite corners, clipped at the near plane; both sides are drawn. Neighbours that share an
/// edge leave no gap. Returns the number of triangles left out because a corner is not finite. Memory is bounded for
/// any number of triangles. Indices must be valid: see validate(Mesh).
int64_t draw_triangles(Visibility& target, const Mesh& mesh, const Camera& camera);

/// Unit normals in world axes, three per triangle: the vertices' attribute `normal` when there is one, else the mean
/// over the faces around the vertex whose normals are within 60 degrees of the triangle's, weighted by area, so that
/// edges of machines and houses stay sharp. O(faces) but for vertices of more than 64 faces, which average all of them.
std::vector<Vec3f> corner_normals(const Mesh& mesh);

}  // namespace stipple::picture
