#pragma once
// Vectors of a mesh in float64. Not for users.

#include <cmath>

#include "stipple/geometry/mesh/vec3.h"
#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

inline double length(const Vec3& a) {
    return std::sqrt(dot(a, a));
}
/// Of unit length; (0, 0, 0) stays.
inline Vec3 unit(const Vec3& a) {
    const double l = length(a);
    return l > 0 ? (1 / l) * a : Vec3{};
}

inline Vec3 vec3_at(const float* p) {
    return {p[0], p[1], p[2]};
}
inline void store(const Vec3& a, float* p) {
    p[0] = static_cast<float>(a.x), p[1] = static_cast<float>(a.y), p[2] = static_cast<float>(a.z);
}

/// The place of corner 0, 1 or 2 of a face.
inline Vec3 corner_of(const MeshView& mesh, int64_t face, int corner) {
    return vec3_at(mesh.vertices.data() + 3 * int64_t{mesh.triangles.data()[3 * face + corner]});
}

/// Along the normal, twice as long as the face is large. Products of differences of float32 numbers neither overflow
/// nor vanish in float64, so this is zero only for faces without area.
inline Vec3 area_vector(const MeshView& mesh, int64_t face) {
    const Vec3 a = corner_of(mesh, face, 0);
    return cross(corner_of(mesh, face, 1) - a, corner_of(mesh, face, 2) - a);
}

/// require_mesh, and on the CPU.
inline void require_cpu_mesh(const char* who, const MeshView& mesh) {
    STIPPLE_REQUIRE(mesh.device().type == DeviceType::cpu, "{}: works on the CPU, the mesh is on {}", who,
                    to_string(mesh.device()));
    require_mesh(who, mesh);
}

}  // namespace stipple::geometry
