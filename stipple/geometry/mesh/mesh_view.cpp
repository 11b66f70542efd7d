#include "stipple/geometry/mesh_view.h"

#include <cmath>

namespace stipple::geometry {

void require_mesh(const char* who, const MeshView& mesh) {
    const auto& [vertices, triangles] = mesh;
    STIPPLE_REQUIRE(vertices.size(1) == 3 && vertices.is_contiguous(),
                    "{}: vertices must be [n, 3] without gaps, got {}", who, shape_text(vertices.shape().data(), 2));
    STIPPLE_REQUIRE(triangles.size(1) == 3 && triangles.is_contiguous(),
                    "{}: triangles must be [m, 3] without gaps, got {}", who, shape_text(triangles.shape().data(), 2));
    STIPPLE_REQUIRE(vertices.device() == triangles.device(), "{}: vertices on {}, triangles on {}", who,
                    to_string(vertices.device()), to_string(triangles.device()));
    constexpr int64_t kMost = INT32_MAX;
    STIPPLE_REQUIRE(vertices.size(0) <= kMost && triangles.size(0) <= kMost, "{}: {} vertices and {} faces, at most {}",
                    who, vertices.size(0), triangles.size(0), kMost);
    if (mesh.device().type != DeviceType::cpu) return;
    const int32_t* corner = triangles.data();
    for (int64_t i = 0; i < 3 * triangles.size(0); ++i) {
        STIPPLE_REQUIRE(corner[i] >= 0 && corner[i] < vertices.size(0), "{}: face {} has vertex {} of {}", who, i / 3,
                        corner[i], vertices.size(0));
        const float* p = vertices.data() + 3 * int64_t{corner[i]};
        STIPPLE_REQUIRE(std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]),
                        "{}: vertex {} of face {} is not finite", who, corner[i], i / 3);
    }
}

}  // namespace stipple::geometry
