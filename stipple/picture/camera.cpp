#include "stipple/picture/camera.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/picture/render/sample.h"

namespace stipple::picture {
namespace {

constexpr int64_t kMaxSample = 50'000;
constexpr int64_t kGrain = int64_t{1} << 16;
constexpr double kTail = 0.01;  // of the points on each side of an axis may be stray ...
constexpr double kReach = 2;    // ... when further out than so many diagonals of the box of the others

struct Range {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    void add(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    void add(const Range& other) {
        low = std::min(low, other.low);
        high = std::max(high, other.high);
    }
};

/// A cloud with the box beyond which its points are stray.
struct Seen {
    const PointCloud* cloud;
    Vec3d offset;  // from the camera's origin to the cloud's
    std::array<Range, 3> box;

    bool has(const float* p) const {
        // Comparisons with NaN are false.
        return p[0] >= box[0].low && p[0] <= box[0].high && p[1] >= box[1].low && p[1] <= box[1].high &&
               p[2] >= box[2].low && p[2] <= box[2].high;
    }
};

std::array<Range, 3> box_without_strays(const PointCloud& cloud) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    std::array<Range, 3> box;
    box.fill({-kLargest, kLargest});
    std::vector<float> sample[3];
    const float* p = cloud.positions.data();
    for_sample(cloud.size(), kMaxSample, [&](int64_t i) {
        if (!std::isfinite(p[3 * i]) || !std::isfinite(p[3 * i + 1]) || !std::isfinite(p[3 * i + 2])) return;
        for (int axis = 0; axis < 3; ++axis) sample[axis].push_back(p[3 * i + axis]);
    });
    if (sample[0].size() < 200) return box;  // every point of a small cloud counts
    double squares = 0;
    std::array<Range, 3> middle;
    for (size_t axis = 0; axis < 3; ++axis) {
        std::vector<float>& values = sample[axis];
        for (const double q : {kTail, 1 - kTail}) {
            const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
            std::nth_element(values.begin(), at, values.end());
            middle[axis].add(*at);
        }
        const double extent = middle[axis].high - middle[axis].low;
        squares += extent * extent;
    }
    const double reach = kReach * std::sqrt(squares);
    if (!(reach > 0)) return box;  // nearly all points are one: the others are what there is to see
    for (size_t axis = 0; axis < 3; ++axis)
        box[axis] = {std::max(-kLargest, middle[axis].low - reach), std::min(kLargest, middle[axis].high + reach)};
    return box;
}

/// The ranges of linear functions of the points, which `measure(point, ranges)` adds to. In parallel; ranges do not
/// depend on the order.
template <size_t Count, class Measure>
std::array<Range, Count> ranges_of(const std::vector<Seen>& clouds, const Measure& measure) {
    std::array<Range, Count> all;
    std::mutex mutex;
    for (const Seen& seen : clouds)
        parallel_for(seen.cloud->size(), kGrain, [&](int64_t begin, int64_t end) {
            std::array<Range, Count> part;
            const float* p = seen.cloud->positions.data();
            for (int64_t i = begin; i < end; ++i)
                if (seen.has(p + 3 * i)) measure(Vec3d{p[3 * i], p[3 * i + 1], p[3 * i + 2]} + seen.offset, part);
            const std::lock_guard lock(mutex);
            for (size_t k = 0; k < Count; ++k) all[k].add(part[k]);
        });
    return all;
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

    std::vector<Seen> seen;
    for (const PointCloud* cloud : clouds) {
        if (!cloud || cloud->size() == 0) continue;
        if (seen.empty()) camera.origin = cloud->origin;
        seen.push_back({cloud, camera.offset_of(*cloud), box_without_strays(*cloud)});
    }
    const auto to_axes = [&](Vec3d p) -> Vec3d {
        return {dot(p, camera.right), dot(p, camera.up), dot(p, camera.forward)};
    };
    std::array<Range, 3> axes = ranges_of<3>(seen, [&](Vec3d p, std::array<Range, 3>& ranges) {
        const Vec3d at = to_axes(p);
        ranges[0].add(at.x);
        ranges[1].add(at.y);
        ranges[2].add(at.z);
    });
    const bool nothing = !(axes[0].low <= axes[0].high);
    if (nothing) axes.fill({0, 0});

    // The unit is half the diagonal.
    const auto [x, y, z] = axes;
    const Vec3d middle{(x.low + x.high) / 2, (y.low + y.high) / 2, (z.low + z.high) / 2};
    const double radius = length(Vec3d{x.high - x.low, y.high - y.low, z.high - z.low}) / 2;
    // Equal points, and differences that rounding ate, are shown as a dot in a unit ball.
    const double rounding = 1e-12 * (std::abs(middle.x) + std::abs(middle.y) + std::abs(middle.z));
    camera.unit = radius > rounding && radius > 1e-290 ? radius : 1;
    const auto scaled = [&](double value, double center) { return (value - center) * (1 / camera.unit); };
    const double nearest = scaled(z.low, middle.z), farthest = scaled(z.high, middle.z);

    const double inner_width = std::max(width - 2 * margin, 1.0), inner_height = std::max(height - 2 * margin, 1.0);
    Vec3d eye;  // relative to the middle, camera axes, scene units
    if (camera.perspective) {
        // Each side of the frustum must touch the points: with t its slope, max(x - z t) and max(-x - z t) fix where
        // its two planes meet, and the eye is the farther of the horizontal and the vertical meeting point.
        const double slope = std::tan(viewpoint.field_of_view * 3.14159265358979323846 / 360);
        const double smaller = std::min(inner_width, inner_height);
        const double tx = slope * inner_width / smaller, ty = slope * inner_height / smaller;
        std::array<Range, 4> sides = ranges_of<4>(seen, [&](Vec3d point, std::array<Range, 4>& ranges) {
            const Vec3d p = (to_axes(point) - middle) * (1 / camera.unit);
            ranges[0].add(p.x - p.z * tx);
            ranges[1].add(-p.x - p.z * tx);
            ranges[2].add(p.y - p.z * ty);
            ranges[3].add(-p.y - p.z * ty);
        });
        if (nothing) sides.fill({0, 0});
        const double right = sides[0].high, left = sides[1].high, top = sides[2].high, bottom = sides[3].high;
        eye.x = (right - left) / 2;
        eye.y = (top - bottom) / 2;
        eye.z = std::min(-(right + left) / (2 * tx), -(top + bottom) / (2 * ty));
        // Never inside what is seen, however flat it is.
        eye.z = std::min(eye.z, nearest - 0.25);
        camera.focal = smaller / (2 * slope);
    } else {
        const Range px{scaled(x.low, middle.x), scaled(x.high, middle.x)};
        const Range py{scaled(y.low, middle.y), scaled(y.high, middle.y)};
        const double extent_x = px.high - px.low, extent_y = py.high - py.low;
        camera.focal = std::min(inner_width / std::max(extent_x, 1e-2), inner_height / std::max(extent_y, 1e-2));
        if (radius <= rounding) camera.focal = std::min(inner_width, inner_height) / 2;
        eye = {(px.low + px.high) / 2, (py.low + py.high) / 2, -16};
    }
    camera.focal *= viewpoint.zoom;
    camera.depth_low = nearest - eye.z;
    camera.depth_high = std::max(farthest - eye.z, camera.depth_low + 1e-6);
    eye = eye * camera.unit + middle;
    camera.eye = camera.right * eye.x + camera.up * eye.y + camera.forward * eye.z;
    return camera;
}

}  // namespace stipple::picture
