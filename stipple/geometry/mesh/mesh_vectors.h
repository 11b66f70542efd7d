#pragma once
// Vectors of a mesh in float64. Not for users.

#include "stipple/core/box.h"
#include "stipple/core/vec3.h"
#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

/// The place of corner 0, 1 or 2 of a face.
inline Vec3d corner_of(const MeshView& mesh, int64_t face, int corner) {
    return to_vec3(mesh.vertices.data() + 3 * int64_t{mesh.triangles.data()[3 * face + corner]});
}

/// Along the normal, twice as long as the face is large. Products of differences of float32 numbers neither overflow
/// nor vanish in float64, so this is zero only for faces without area.
inline Vec3d area_vector(const MeshView& mesh, int64_t face) {
    const Vec3d a = corner_of(mesh, face, 0);
    return cross(corner_of(mesh, face, 1) - a, corner_of(mesh, face, 2) - a);
}

/// The box of the corners of all faces.
inline Box<float> box_of_faces(const MeshView& mesh) {
    auto box = Box<float>::none();
    for (int64_t i = 0; i < 3 * mesh.faces(); ++i)
        box.add(mesh.vertices.data() + 3 * int64_t{mesh.triangles.data()[i]});
    return box;
}

/// require_mesh, and on the CPU.
inline void require_cpu_mesh(const char* who, const MeshView& mesh) {
    STIPPLE_REQUIRE(mesh.device().type == DeviceType::cpu, "{}: works on the CPU, the mesh is on {}", who,
                    to_string(mesh.device()));
    require_mesh(who, mesh);
}

}  // namespace stipple::geometry
