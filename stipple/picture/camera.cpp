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

constexpr double kDegree = 3.14159265358979323846 / 180;

/// The up axis, the direction to the front and the one to the side, a right-handed system.
std::array<Vec3d, 3> axes_of(UpAxis up) {
    const Vec3d units[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const int axis = axis_of(up);
    const bool is_negative = up == UpAxis::minus_x || up == UpAxis::minus_y || up == UpAxis::minus_z;
    const Vec3d side = units[(axis + 2) % 3];
    if (is_negative) return {-units[axis], units[(axis + 1) % 3], -side};
    return {units[axis], units[(axis + 1) % 3], side};
}

void look_along(Camera& camera, Vec3d forward, Vec3d world_up) {
    camera.forward = forward;
    camera.right = normalized(cross(camera.forward, world_up));
    camera.up = cross(camera.right, camera.forward);
}

/// Angles in degrees.
void orient(Camera& camera, UpAxis up_axis, double azimuth_angle, double elevation_angle) {
    const double azimuth = azimuth_angle * kDegree;
    // At the poles "up" is undefined; stop just short of them.
    const double elevation = std::clamp(elevation_angle, -89.9, 89.9) * kDegree;
    const double c = std::cos(elevation), s = std::sin(elevation);
    const auto [up, front, side] = axes_of(up_axis);
    look_along(camera, -(front * (c * std::cos(azimuth)) + side * (c * std::sin(azimuth)) + up * s), up);
}

/// Angles that show content well from above.
struct Angles {
    double azimuth = 35, elevation = 22;
};

Angles choose_angles(const std::vector<Seen>& clouds, UpAxis up_axis) {
    constexpr double kFlat = 0.25, kSteepest = 60, kLong = 1.3, kTurned = 12;
    const auto [up, front, side] = axes_of(up_axis);
    std::vector<double> values[3];  // up, front, side
    double xx = 0, xy = 0, yy = 0, mean_x = 0, mean_y = 0;
    for (const Seen& seen : clouds)
        for_sample(seen.cloud->size(), kMaxSample, [&](int64_t i) {
            const float* p = seen.cloud->positions.data() + 3 * i;
            if (!seen.has(p)) return;
            const Vec3d at = Vec3d{p[0], p[1], p[2]} + seen.offset;
            values[0].push_back(dot(at, up));
            values[1].push_back(dot(at, front));
            values[2].push_back(dot(at, side));
        });
    Angles angles;
    const size_t n = values[0].size();
    if (n < 3) return angles;
    for (size_t i = 0; i < n; ++i) mean_x += values[1][i], mean_y += values[2][i];
    mean_x /= static_cast<double>(n), mean_y /= static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) {
        const double x = values[1][i] - mean_x, y = values[2][i] - mean_y;
        xx += x * x, xy += x * y, yy += y * y;
    }
    const auto extent = [&](std::vector<double>& of) {
        Range middle;
        for (const double q : {0.02, 0.98}) {
            const auto at = of.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(n - 1));
            std::nth_element(of.begin(), at, of.end());
            middle.add(*at);
        }
        return middle.high - middle.low;
    };
    const double height = extent(values[0]), wide = std::max(extent(values[1]), extent(values[2]));
    if (!(height < kFlat * wide)) return angles;
    angles.elevation += (kSteepest - angles.elevation) * (1 - height / (kFlat * wide));
    // The longer principal axis across the picture, a little turned so that depth shows: of the two sides that would
    // do, the one nearer to the usual angle.
    const double half = std::sqrt((xx - yy) * (xx - yy) / 4 + xy * xy), middle = (xx + yy) / 2;
    if (!(middle + half > kLong * kLong * (middle - half))) return angles;
    const double along = std::atan2(2 * xy, xx - yy) / 2 / kDegree;
    double best = angles.azimuth, least = 360;
    for (const double across : {along + 90, along - 90}) {
        const double off = std::remainder(across - angles.azimuth, 360.0);
        if (std::abs(off) < least) {
            least = std::abs(off);
            best = angles.azimuth + off - std::clamp(off, -kTurned, kTurned);
        }
    }
    angles.azimuth = best;
    return angles;
}

/// From a place among the content: as wide as the middle 95 % of the points in front of it need, 100 degrees at most,
/// and these in the middle of the picture unless it is aimed.
void look_from_eye(Camera& camera, const Viewpoint& viewpoint, const std::vector<Seen>& clouds, Vec3d middle,
                   double inner_width, double inner_height) {
    constexpr double kWidest = 2 * 1.19, kLeastShare = 0.02;  // slopes: of 100 degrees, of two
    const Vec3d eye = to_vec(*viewpoint.eye) - to_vec(camera.origin);
    const Vec3d target = viewpoint.aim ? to_vec(*viewpoint.aim) - to_vec(camera.origin) : middle;
    const auto [up, front, side] = axes_of(viewpoint.up);
    Vec3d forward = target - eye;
    if (!(length(forward) > 0)) forward = front;
    forward = normalized(forward);
    if (std::abs(dot(forward, up)) > 0.999) forward = normalized(forward + front * 0.05);
    look_along(camera, forward, up);
    std::vector<double> x, y;
    Range depths;
    for (const Seen& seen : clouds)
        for_sample(seen.cloud->size(), kMaxSample, [&](int64_t i) {
            const float* p = seen.cloud->positions.data() + 3 * i;
            if (!seen.has(p)) return;
            const Vec3d at = Vec3d{p[0], p[1], p[2]} + seen.offset - eye;
            const double depth = dot(at, camera.forward);
            if (!(depth > kNear * camera.unit)) return;
            depths.add(depth / camera.unit);
            x.push_back(dot(at, camera.right) / depth);
            y.push_back(dot(at, camera.up) / depth);
        });
    const auto range_of = [&](std::vector<double>& values) {
        Range range;
        for (const double q : {0.025, 0.975}) {
            const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
            std::nth_element(values.begin(), at, values.end());
            range.add(std::clamp(*at, -kWidest / 2, kWidest / 2));
        }
        if (viewpoint.aim) range.high = std::max(std::abs(range.low), std::abs(range.high)), range.low = -range.high;
        return range;
    };
    Range across{-0.5, 0.5}, along{-0.5, 0.5};
    if (!x.empty()) across = range_of(x), along = range_of(y);
    camera.perspective = true;
    camera.focal = viewpoint.zoom * std::min(inner_width / std::max(across.high - across.low, kLeastShare),
                                             inner_height / std::max(along.high - along.low, kLeastShare));
    camera.center_x -= camera.focal * (across.low + across.high) / 2;
    camera.center_y += camera.focal * (along.low + along.high) / 2;
    camera.eye = eye;
    camera.depth_low = depths.low <= depths.high ? depths.low : 1;
    camera.depth_high = std::max(depths.high, camera.depth_low + 1e-6);
}

}  // namespace

const std::vector<std::string>& up_axis_names() {
    static const std::vector<std::string> names = {"z", "y", "x", "-z", "-y", "-x"};
    return names;
}

UpAxis up_axis_by_name(const std::string& name) {
    const std::vector<std::string>& names = up_axis_names();
    const auto at = std::find(names.begin(), names.end(), name);
    STIPPLE_REQUIRE(at != names.end(), "the up axis is z, y, x, -z, -y or -x, got {}", name);
    return static_cast<UpAxis>(at - names.begin());
}

int axis_of(UpAxis up) {
    switch (up) {
        case UpAxis::x:
        case UpAxis::minus_x: return 0;
        case UpAxis::y:
        case UpAxis::minus_y: return 1;
        default: return 2;
    }
}

Vec3d direction_of(UpAxis up) {
    return axes_of(up)[0];
}

const std::vector<std::string>& view_names() {
    static const std::vector<std::string> names = {"auto", "iso", "top", "front", "side", "sensor"};
    return names;
}

void set_view(Viewpoint& viewpoint, ViewName view, const std::array<double, 3>& sensor) {
    switch (view) {
        case ViewName::automatic: viewpoint.azimuth = viewpoint.elevation = {}; break;
        case ViewName::iso: viewpoint.azimuth = 45, viewpoint.elevation = 35.264; break;
        case ViewName::top: viewpoint.azimuth = -90, viewpoint.elevation = 90; break;
        case ViewName::front: viewpoint.azimuth = 0, viewpoint.elevation = 0; break;
        case ViewName::side: viewpoint.azimuth = 90, viewpoint.elevation = 0; break;
        case ViewName::sensor: viewpoint.eye = sensor; break;
    }
}

Camera Camera::cropped(double x, double y, double zoom) const {
    Camera part = *this;
    part.center_x = (center_x - x) * zoom;
    part.center_y = (center_y - y) * zoom;
    part.focal = focal * zoom;
    return part;
}

Camera fit_camera(const Viewpoint& viewpoint, std::span<const PointCloud* const> clouds, double width, double height,
                  double margin) {
    STIPPLE_REQUIRE(std::isfinite(viewpoint.azimuth.value_or(0)) && std::isfinite(viewpoint.elevation.value_or(0)),
                    "a view angle is not finite");
    for (const auto& place : {viewpoint.aim, viewpoint.eye})
        STIPPLE_REQUIRE(
            !place || (std::isfinite((*place)[0]) && std::isfinite((*place)[1]) && std::isfinite((*place)[2])),
            "a place to look from or at is not finite");
    STIPPLE_REQUIRE(viewpoint.field_of_view >= 1 && viewpoint.field_of_view <= 150, "a field of view of {} degrees",
                    viewpoint.field_of_view);
    STIPPLE_REQUIRE(viewpoint.zoom > 0 && viewpoint.zoom <= 1e6, "a zoom of {}", viewpoint.zoom);
    Camera camera;
    camera.perspective = viewpoint.projection == Projection::perspective;
    camera.center_x = width / 2;
    camera.center_y = height / 2;

    std::vector<Seen> seen;
    for (const PointCloud* cloud : clouds) {
        if (!cloud || cloud->size() == 0) continue;
        if (seen.empty()) camera.origin = cloud->origin;
        seen.push_back({cloud, camera.offset_of(*cloud), box_without_strays(*cloud)});
    }
    Angles angles;
    if (!viewpoint.azimuth || !viewpoint.elevation) angles = choose_angles(seen, viewpoint.up);
    orient(camera, viewpoint.up, viewpoint.azimuth.value_or(angles.azimuth),
           viewpoint.elevation.value_or(angles.elevation));
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
    if (viewpoint.eye) {
        const Vec3d centre = camera.right * middle.x + camera.up * middle.y + camera.forward * middle.z;
        look_from_eye(camera, viewpoint, seen, centre, inner_width, inner_height);
        return camera;
    }
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
    if (viewpoint.aim) {  // sideways, so that the direction stays
        const Vec3d aim = camera.to_view(to_vec(*viewpoint.aim) - to_vec(camera.origin), {});
        camera.eye = camera.eye + camera.right * (aim.x * camera.unit) + camera.up * (aim.y * camera.unit);
    }
    return camera;
}

}  // namespace stipple::picture
