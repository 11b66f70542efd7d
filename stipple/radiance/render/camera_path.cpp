#include "stipple/radiance/camera_path.h"

#include <cmath>
#include <numbers>

#include "stipple/core/error.h"

namespace stipple::radiance {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

Vec3d middle_of(const Field& field) {
    const Box<float>& box = field.grid.box;
    return {0.5 * (box.low[0] + box.high[0]), 0.5 * (box.low[1] + box.high[1]), 0.5 * (box.low[2] + box.high[2])};
}

Vec3d column(const Camera& camera, size_t c) {
    return {camera.to_world[c], camera.to_world[4 + c], camera.to_world[8 + c]};
}

/// A direction at a right angle to `up`.
Vec3d beside(Vec3d up) {
    return unit(cross(up, std::abs(up.x) < 0.9 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0}));
}

}  // namespace

Camera look_at(const Field& field, Vec3d eye, Vec3d aim, Vec3d up, const Lens& lens) {
    const Vec3d back = unit(eye - aim);
    STIPPLE_REQUIRE(length(back) > 0.5, "a camera at the place that it looks at has no direction");
    Vec3d right = cross(unit(up), back);
    right = length(right) > 1e-6 ? unit(right) : beside(back);
    const Vec3d above = cross(back, right);
    Camera camera;
    const Camera* like = field.cameras.empty() ? nullptr : &field.cameras[0];
    camera.width = lens.width ? lens.width : like ? like->width : 800;
    camera.height = lens.height ? lens.height : like ? like->height : 800;
    const double share = lens.degrees ? std::tan(0.5 * lens.degrees * kDegree)
                         : like       ? 0.5 * like->width / like->fx
                                      : std::tan(20 * kDegree);
    camera.fx = camera.fy = static_cast<float>(0.5 * camera.width / share);
    camera.cx = 0.5f * static_cast<float>(camera.width), camera.cy = 0.5f * static_cast<float>(camera.height);
    const Vec3d columns[] = {right, above, back, eye};
    for (int row = 0; row < 3; ++row)
        for (int c = 0; c < 4; ++c)
            camera.to_world[static_cast<size_t>(4 * row + c)] = static_cast<float>(columns[c][row]);
    return camera;
}

Vec3d up_of(const Field& field) {
    Vec3d sum;
    for (const Camera& camera : field.cameras) sum = sum + unit(column(camera, 1));
    const Vec3d up = unit(sum);
    if (length(sum) < 0.2 * static_cast<double>(field.cameras.size()) || length(up) == 0) return {0, 0, 1};
    // Cameras all around an object are upright about an axis of its coordinates, as a rule.
    for (int axis = 0; axis < 3; ++axis)
        if (std::abs(up[axis]) > 0.95) {
            Vec3d exact;
            exact[axis] = up[axis] > 0 ? 1 : -1;
            return exact;
        }
    return up;
}

std::vector<Camera> orbit(const Field& field, int frames, double elevation, const Lens& lens) {
    STIPPLE_REQUIRE(frames > 0, "orbit: {} frames", frames);
    const Vec3d middle = middle_of(field), up = up_of(field), side = beside(up), other = cross(up, side);
    double distance = 0, mean = 0;
    for (const Camera& camera : field.cameras) {
        const Vec3d away = column(camera, 3) - middle;
        distance += length(away) / static_cast<double>(field.cameras.size());
        mean += std::asin(dot(unit(away), up)) / static_cast<double>(field.cameras.size());
    }
    if (field.cameras.empty()) {
        const Box<float>& box = field.grid.box;
        distance = 1.5 * std::hypot(box.extent(0), box.extent(1), box.extent(2));
        mean = 30 * kDegree;
    }
    const double height = std::isnan(elevation) ? mean : elevation * kDegree;
    std::vector<Camera> cameras;
    for (int i = 0; i < frames; ++i) {
        const double angle = 2 * std::numbers::pi * i / frames;
        const Vec3d away =
            std::cos(height) * (std::cos(angle) * side + std::sin(angle) * other) + std::sin(height) * up;
        cameras.push_back(look_at(field, middle + distance * away, middle, up, lens));
    }
    return cameras;
}

}  // namespace stipple::radiance
