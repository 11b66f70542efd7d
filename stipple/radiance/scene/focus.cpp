// Depths of scenes whose cameras alone are known.

#include <algorithm>
#include <cmath>

#include "stipple/core/vec3.h"
#include "stipple/radiance/scene/planned_view.h"

namespace stipple::radiance {
namespace {

Vec3d position_of(const PlannedView& view) {
    const auto& m = view.frame.to_world;
    return {m[3], m[7], m[11]};
}
Vec3d axis_of(const PlannedView& view) {
    const auto& m = view.frame.to_world;
    return unit(Vec3d{-m[2], -m[6], -m[10]});
}

/// The point nearest to the axes of all cameras, by least squares; false where the axes are as good as parallel.
bool find_focus(const std::vector<PlannedView>& views, Vec3d& focus) {
    Vec3d rows[3], sum;
    const Vec3d first = position_of(views.front());  // large coordinates lose nothing about it
    for (const PlannedView& view : views) {
        const Vec3d d = axis_of(view), p = position_of(view) - first;
        for (int i = 0; i < 3; ++i) {
            Vec3d row = d * -d[i];
            row[i] += 1;
            rows[i] = rows[i] + row;
            sum[i] += dot(row, p);
        }
    }
    const double determinant = dot(rows[0], cross(rows[1], rows[2]));
    const auto n = static_cast<double>(views.size());
    if (!(determinant > 1e-6 * n * n * n)) return false;
    const Vec3d solution =
        cross(rows[1], rows[2]) * sum.x + cross(rows[2], rows[0]) * sum.y + cross(rows[0], rows[1]) * sum.z;
    focus = first + solution * (1 / determinant);
    return true;
}

}  // namespace

void set_depths_by_focus(const std::vector<PlannedView>& views, Scene& scene) {
    scene.near = kBlenderNear;
    scene.far = kBlenderFar;
    Vec3d focus;
    if (!find_focus(views, focus)) return;
    double least = INFINITY, most = 0;
    for (const PlannedView& view : views) {
        const double depth = dot(focus - position_of(view), axis_of(view));
        least = std::min(least, depth);
        most = std::max(most, depth);
    }
    if (!(least > 1e-3 * most)) return;  // cameras that look away from each other
    scene.near = static_cast<float>(0.5 * least);
    scene.far = static_cast<float>(1.5 * most);
}

}  // namespace stipple::radiance
