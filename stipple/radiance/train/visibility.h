#pragma once
// Which cameras see a place, on CPU and CUDA.

#include "stipple/radiance/march/skip.h"

namespace stipple::radiance {

inline constexpr float kTransparent = -100;  // a density

/// Cameras that have `p` in their picture, not nearer than `near`.
STIPPLE_HD int views_of(Vec3f p, const CameraView* cameras, int count, float near) {
    int seen = 0;
    for (int i = 0; i < count; ++i) {
        const CameraView& c = cameras[i];
        const float* m = c.to_world;
        const Vec3f q = {p.x - m[3], p.y - m[7], p.z - m[11]};
        const float depth = -(m[2] * q.x + m[6] * q.y + m[10] * q.z);
        if (!(depth > 0) || depth < near) continue;
        const float u = (m[0] * q.x + m[4] * q.y + m[8] * q.z) / depth * c.fx + c.cx;
        const float v = -(m[1] * q.x + m[5] * q.y + m[9] * q.z) / depth * c.fy + c.cy;
        if (u >= 0 && v >= 0 && u < static_cast<float>(c.width) && v < static_cast<float>(c.height)) ++seen;
    }
    return seen;
}

STIPPLE_HD bool is_near_camera(Vec3f p, const CameraView* cameras, int count, float near) {
    for (int i = 0; i < count; ++i) {
        const float* m = cameras[i].to_world;
        const Vec3f q = {p.x - m[3], p.y - m[7], p.z - m[11]};
        if (dot(q, q) <= near * near) return true;
    }
    return false;
}

/// Whether the ray of a pixel meets an occupied node.
STIPPLE_HD bool meets_occupied(const BrickGrid& bricks, const CameraView& camera, int x, int y, float near,
                               float step) {
    const March march = march_through(camera_ray(camera, x, y), bricks.view.low, bricks.view.high, near, step);
    const SampleRange inside = samples_inside(bricks.view, march);
    const Vec3f per_node = samples_per_node(bricks.view, march);
    for (int32_t i = inside.begin;; ++i) {
        i = next_sample(bricks, march, per_node, i, inside.end);
        if (i >= inside.end) return false;
        if (is_occupied(bricks, to_nodes(bricks.view, march.at(i)))) return true;
    }
}

}  // namespace stipple::radiance
