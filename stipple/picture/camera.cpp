#include "stipple/picture/camera.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "stipple/picture/render/sample.h"

namespace stipple::picture {
namespace {

constexpr int64_t kMaxSample = 50'000;
constexpr double kTail = 0.01;     // of the points on each side may be stray ...
constexpr double kReach = 0.3334;  // ... when further out than this part of the extent of the others

struct Range {
    double low = 0, high = 0;
};

// Reorders values.
Range robust_range(std::vector<double>& values) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const Range full{*low, *high};
    if (values.size() < 200) return full;  // every point of a small cloud counts
    const auto quantile = [&](double q) {
        const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
        std::nth_element(values.begin(), at, values.end());
        return *at;
    };
    const double low_q = quantile(kTail), high_q = quantile(1 - kTail);
    const double reach = kReach * (high_q - low_q);
    return {std::max(full.low, low_q - reach), std::min(full.high, high_q + reach)};
}

template <class Function>
Range range_of(const std::vector<Vec3d>& points, const Function& function) {
    std::vector<double> values(points.size());
    for (size_t i = 0; i < points.size(); ++i) values[i] = function(points[i]);
    return robust_range(values);
}

void orient(Camera& camera, const Viewpoint& viewpoint) {
    const double degree = 3.14159265358979323846 / 180;
    const double azimuth = viewpoint.azimuth * degree;
    // At the poles "up" is undefined; stop just short of them.
    const double elevation = std::clamp(viewpoint.elevation, -89.9, 89.9) * degree;
    const double c = std::cos(elevation), s = std::sin(elevation);
    Vec3d world_up, back;
    if (viewpoint.up == UpAxis::z) {
        world_up = {0, 0, 1};
        back = {c * std::cos(azimuth), c * std::sin(azimuth), s};
    } else {
        world_up = {0, 1, 0};
        back = {c * std::sin(azimuth), s, c * std::cos(azimuth)};
    }
    camera.forward = -back;
    camera.right = normalized(cross(camera.forward, world_up));
    camera.up = cross(camera.right, camera.forward);
}

}  // namespace

Camera Camera::cropped(double x, double y, double zoom) const {
    Camera part = *this;
    part.center_x = (center_x - x) * zoom;
    part.center_y = (center_y - y) * zoom;
    part.focal = focal * zoom;
    return part;
}

Camera fit_camera(const Viewpoint& viewpoint, std::span<const PointCloud* const> clouds, double width, double height,
                  double margin) {
    STIPPLE_REQUIRE(std::isfinite(viewpoint.azimuth) && std::isfinite(viewpoint.elevation),
                    "a view angle is not finite");
    STIPPLE_REQUIRE(viewpoint.field_of_view >= 1 && viewpoint.field_of_view <= 150, "a field of view of {} degrees",
                    viewpoint.field_of_view);
    STIPPLE_REQUIRE(viewpoint.zoom > 0 && viewpoint.zoom <= 1e6, "a zoom of {}", viewpoint.zoom);
    Camera camera;
    orient(camera, viewpoint);
    camera.perspective = viewpoint.projection == Projection::perspective;
    camera.center_x = width / 2;
    camera.center_y = height / 2;

    std::vector<Vec3d> points;  // relative to the origin of the first cloud
    bool first = true;
    for (const PointCloud* cloud : clouds) {
        if (!cloud || cloud->size() == 0) continue;
        if (first) camera.origin = cloud->origin;
        first = false;
        const Vec3d offset = camera.offset_of(*cloud);
        const float* p = cloud->positions.data();
        for_sample(cloud->size(), kMaxSample, [&](int64_t i) {
            const Vec3d point = Vec3d{p[3 * i], p[3 * i + 1], p[3 * i + 2]} + offset;
            if (std::isfinite(point.x + point.y + point.z)) points.push_back(point);
        });
    }
    if (points.empty()) points.push_back({});

    // Into the camera's axes; then the unit is half the robust diagonal.
    for (Vec3d& p : points) p = {dot(p, camera.right), dot(p, camera.up), dot(p, camera.forward)};
    const Range x = range_of(points, [](Vec3d p) { return p.x; });
    const Range y = range_of(points, [](Vec3d p) { return p.y; });
    const Range z = range_of(points, [](Vec3d p) { return p.z; });
    const Vec3d middle{(x.low + x.high) / 2, (y.low + y.high) / 2, (z.low + z.high) / 2};
    const double radius = length(Vec3d{x.high - x.low, y.high - y.low, z.high - z.low}) / 2;
    // Equal points, and differences that rounding ate, are shown as a dot in a unit ball.
    const double rounding = 1e-12 * (std::abs(middle.x) + std::abs(middle.y) + std::abs(middle.z));
    camera.unit = radius > rounding && radius > 1e-290 ? radius : 1;
    for (Vec3d& p : points) p = (p - middle) * (1 / camera.unit);

    const double inner_width = std::max(width - 2 * margin, 1.0), inner_height = std::max(height - 2 * margin, 1.0);
    Vec3d eye;  // relative to the middle, camera axes, scene units
    if (camera.perspective) {
        // Each side of the frustum must touch the points: with t its slope, max(x - z t) and max(-x - z t) fix where
        // its two planes meet, and the eye is the farther of the horizontal and the vertical meeting point.
        const double slope = std::tan(viewpoint.field_of_view * 3.14159265358979323846 / 360);
        const double smaller = std::min(inner_width, inner_height);
        const double tx = slope * inner_width / smaller, ty = slope * inner_height / smaller;
        const double right = range_of(points, [&](Vec3d p) { return p.x - p.z * tx; }).high;
        const double left = range_of(points, [&](Vec3d p) { return -p.x - p.z * tx; }).high;
        const double top = range_of(points, [&](Vec3d p) { return p.y - p.z * ty; }).high;
        const double bottom = range_of(points, [&](Vec3d p) { return -p.y - p.z * ty; }).high;
        eye.x = (right - left) / 2;
        eye.y = (top - bottom) / 2;
        eye.z = std::min(-(right + left) / (2 * tx), -(top + bottom) / (2 * ty));
        // Never inside what is seen, however flat it is.
        const double nearest = range_of(points, [](Vec3d p) { return p.z; }).low;
        eye.z = std::min(eye.z, nearest - 0.25);
        camera.focal = smaller / (2 * slope);
    } else {
        const Range px = range_of(points, [](Vec3d p) { return p.x; });
        const Range py = range_of(points, [](Vec3d p) { return p.y; });
        const double extent_x = px.high - px.low, extent_y = py.high - py.low;
        camera.focal = std::min(inner_width / std::max(extent_x, 1e-2), inner_height / std::max(extent_y, 1e-2));
        if (radius <= rounding) camera.focal = std::min(inner_width, inner_height) / 2;
        eye = {(px.low + px.high) / 2, (py.low + py.high) / 2, -16};
    }
    camera.focal *= viewpoint.zoom;
    const Range depth = range_of(points, [&](Vec3d p) { return p.z - eye.z; });
    camera.depth_low = depth.low;
    camera.depth_high = std::max(depth.high, depth.low + 1e-6);
    eye = eye * camera.unit + middle;
    camera.eye = camera.right * eye.x + camera.up * eye.y + camera.forward * eye.z;
    return camera;
}

}  // namespace stipple::picture
