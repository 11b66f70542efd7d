#include "stipple/geometry/registration/sweep_points.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/error.h"
#include "stipple/geometry/odometry.h"

namespace stipple::geometry {
namespace {

constexpr double kMiddle = 0.5;  // of a sweep's time: what its pose is for

Vector3 cross(const Vector3& a, const Vector3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// Where the sensor was at moments of a sweep, seen from its middle: a table, because turns take a sine for each.
class MotionTable {
public:
    explicit MotionTable(const RigidTransform& motion) {
        for (int k = 0; k <= kSteps; ++k) table_[k] = share_of(motion, static_cast<double>(k) / kSteps - kMiddle);
    }
    /// Turns differ so little over a step that between two the straight line serves.
    Vector3 operator()(const Vector3& place, double moment) const {
        const double scaled = std::clamp(moment, 0.0, 1.0) * kSteps;
        const int k = std::min(static_cast<int>(scaled), kSteps - 1);
        const double share = scaled - k;
        const Vector3 a = table_[k](place), b = table_[k + 1](place);
        return {a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]), a[2] + share * (b[2] - a[2])};
    }

private:
    static constexpr int kSteps = 64;
    RigidTransform table_[kSteps + 1];
};

/// Least and greatest of the finite times; equal where there is nothing to free the sweep of.
std::pair<double, double> span_of(std::span<const double> times) {
    double least = std::numeric_limits<double>::infinity(), greatest = -least;
    for (const double time : times) {
        if (!std::isfinite(time)) continue;
        least = std::min(least, time);
        greatest = std::max(greatest, time);
    }
    return {least, greatest};
}

}  // namespace

void require_times(const PointCloud& sweep, std::span<const double> times) {
    STIPPLE_REQUIRE(sweep.positions.device() == Device{}, "odometry: the sweep must be on the CPU");
    STIPPLE_REQUIRE(sweep.size() == 0 || sweep.positions.size(1) == 3, "odometry: the sweep must be [n, 3]");
    STIPPLE_REQUIRE(times.empty() || static_cast<int64_t>(times.size()) == sweep.size(),
                    "odometry: {} times for {} points", times.size(), sweep.size());
}

SweepPoints points_in_range(const PointCloud& sweep, std::span<const double> times, double nearest, double farthest) {
    const auto [begin, end] = span_of(times);
    SweepPoints points;
    points.places.reserve(static_cast<size_t>(sweep.size()));
    const bool is_timed = begin < end;
    for (int64_t i = 0; i < sweep.size(); ++i) {
        const Vector3 place = {sweep.world(i, 0), sweep.world(i, 1), sweep.world(i, 2)};
        const double range = std::hypot(place[0], place[1], place[2]);
        if (!(range >= nearest && range <= farthest)) continue;
        if (!times.empty() && !std::isfinite(times[i])) continue;
        points.places.push_back(place);
        if (is_timed) points.moments.push_back((times[i] - begin) / (end - begin));
    }
    return points;
}

double range_of(const PointCloud& sweep, double share) {
    std::vector<double> ranges;
    for (int64_t i = 0; i < sweep.size(); ++i) {
        const double range = std::hypot(sweep.world(i, 0), sweep.world(i, 1), sweep.world(i, 2));
        if (std::isfinite(range) && range > 0) ranges.push_back(range);
    }
    if (ranges.empty()) return 0;
    const auto k = static_cast<int64_t>(share * static_cast<double>(ranges.size() - 1));
    std::nth_element(ranges.begin(), ranges.begin() + k, ranges.end());
    return ranges[k];
}

SweepPoints chosen(const SweepPoints& points, const std::vector<int32_t>& indices) {
    SweepPoints some;
    some.places.reserve(indices.size());
    for (const int32_t i : indices) some.places.push_back(points.places[i]);
    if (points.moments.empty()) return some;
    some.moments.reserve(indices.size());
    for (const int32_t i : indices) some.moments.push_back(points.moments[i]);
    return some;
}

/// R^share, V(share a) V(a)^-1 t share, where V is the left Jacobian of the rotation by a.
RigidTransform share_of(const RigidTransform& motion, double share) {
    const std::array<double, 4> q = to_quaternion(motion);
    const double sine = std::hypot(q[1], q[2], q[3]), angle = 2 * std::atan2(sine, q[0]);
    const Vector3& t = motion.translation;
    RigidTransform part;
    if (sine == 0) {
        for (int i = 0; i < 3; ++i) part.translation[i] = share * t[i];
        return part;
    }
    const Vector3 axis = {q[1] / sine, q[2] / sine, q[3] / sine};
    part = rotation_about(axis, share * angle);
    // V^-1 t = t - a/2 (u x t) + (1 - a/2 cot(a/2)) u x (u x t)
    const Vector3 once = cross(axis, t), twice = cross(axis, once);
    const double half = angle / 2, cot = half > 1e-6 ? half / std::tan(half) : 1 - half * half / 3;
    Vector3 way;
    for (int i = 0; i < 3; ++i) way[i] = t[i] - half * once[i] + (1 - cot) * twice[i];
    // V(b) w = w + (1 - cos b)/b (u x w) + (1 - sin b / b) u x (u x w)
    const double b = share * angle;
    const double first = std::abs(b) > 1e-6 ? (1 - std::cos(b)) / b : b / 2;
    const double second = std::abs(b) > 1e-6 ? 1 - std::sin(b) / b : b * b / 6;
    const Vector3 along = cross(axis, way), back = cross(axis, along);
    for (int i = 0; i < 3; ++i) part.translation[i] = share * (way[i] + first * along[i] + second * back[i]);
    return part;
}

std::vector<Vector3> freed(const SweepPoints& points, const RigidTransform& motion) {
    if (points.moments.empty()) return points.places;
    const MotionTable table(motion);
    std::vector<Vector3> places(points.places.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = table(points.places[i], points.moments[i]);
    return places;
}

void SweepClock::tell(std::span<const double> times) {
    const auto [begin, end] = span_of(times);
    const double duration = end - begin, interval = begin - begin_;
    guess_ = lasts_ = 1;
    if (duration > 0 && has_begun_ && interval > duration / 2) {
        if (interval_ > 0) guess_ = std::clamp(interval / interval_, 0.02, 50.0);
        lasts_ = std::min(duration / interval, 1.0);
        interval_ = interval;
    } else {
        interval_ = 0;
    }
    has_begun_ = duration > 0;
    begin_ = begin;
}

PointCloud deskewed(const PointCloud& sweep, std::span<const double> times, const RigidTransform& motion) {
    require_times(sweep, times);
    PointCloud straight = sweep.clone();
    const auto [begin, end] = span_of(times);
    if (!(begin < end)) return straight;
    const MotionTable table(motion);
    for (int64_t i = 0; i < sweep.size(); ++i) {
        const double moment = std::isfinite(times[i]) ? (times[i] - begin) / (end - begin) : kMiddle;
        const Vector3 place = table({sweep.world(i, 0), sweep.world(i, 1), sweep.world(i, 2)}, moment);
        for (int axis = 0; axis < 3; ++axis)
            straight.positions.data()[3 * i + axis] = static_cast<float>(place[axis] - sweep.origin[axis]);
    }
    return straight;
}

}  // namespace stipple::geometry
