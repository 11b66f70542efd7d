#include "stipple/tasks/upsample/between_rings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "stipple/core/interrupt.h"

namespace stipple::tasks {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
constexpr double kWidestStep = 3;  // steps: neighbours in a ring that are farther apart have lost points between them
// Neighbours in a ring are on one surface unless they would see it at less than two degrees: there an edge is likelier.
constexpr double kGrazing = 2 * std::numbers::pi / 180;
constexpr double kSureTo = 0.2;        // local spacings
constexpr double kWidestGap = 8;       // likewise, between rings; a wider one is a hole
constexpr double kCurveInTangent = 8;  // a curve strays from a chord by an eighth of what it strays from its tangent
// Points along a ring from one of its points to the next one: where others tell the surface, and in the end everywhere.
constexpr int kMostSure = 4, kMostAlong = 64;

/// Points of a ring in the order of their azimuths, seen from the sensor.
struct Ring {
    std::vector<int32_t> points;
    std::vector<geometry::SweepView> views;
};

/// A place on a ring: between two neighbours of it, or at one of them.
struct OnRing {
    bool is_known = false;
    std::array<int32_t, 2> points = {};
    std::array<double, 2> shares = {};   // of the direction
    double elevation = 0, nearness = 0;  // nearness is 1 / range: planes are linear in it
};

/// A place as an angle along which it is compared with others, and its nearness.
struct SeenAt {
    double angle = 0, nearness = 0;
};

/// The new point and what it is made of.
struct MadePoint {
    double gap = 0;  // between the input points on both sides
    std::array<int32_t, 3> sources = {-1, -1, -1};
    std::array<float, 3> weights = {};
};

double angle_between(double from, double to) {
    const double angle = to - from;
    return angle < 0 ? angle + kTurn : angle;
}

class Sweep {
public:
    Sweep(const PointCloud& cloud, const geometry::SweepRings& sweep, std::span<const float> spacings,
          const UpsampleOptions& options)
        : cloud_(cloud), sensor_(sweep.sensor), step_(sweep.step), spacings_(spacings) {
        if (options.holes == Holes::fill)
            widest_ = options.hole_size > 0 ? options.hole_size : std::numeric_limits<double>::infinity();
        for (const std::vector<int32_t>& points : sweep.rings) {
            Ring& ring = rings_.emplace_back();
            ring.points = points;
            for (const int32_t i : points) ring.views.push_back(geometry::seen_from(sensor_, world(i)));
        }
    }

    /// `lines` of points between each ring and the next one; adds to `dropped` where there are none.
    std::vector<MadePoint> between(int lines, int64_t& dropped) const {
        std::vector<MadePoint> made;
        for (size_t r = 0; r + 1 < rings_.size(); ++r) {
            check_interrupted();
            for (size_t i = 0; i < rings_[r].points.size(); ++i) {
                const OnRing below = at(rings_[r + 1], rings_[r].views[i].azimuth);
                const bool is_told = below.is_known && is_one_surface(r, i, below);
                if (!is_told) dropped += lines;
                for (int line = 1; is_told && line <= lines; ++line)
                    made.push_back(blend(rings_[r].points[i], below, line / (lines + 1.0)));
            }
        }
        return made;
    }

    /// `lines` of points from each point of a ring to the next one, where they are on one surface; `is_sure`: where the
    /// points before and behind them tell so too.
    std::vector<MadePoint> along(int lines, bool is_sure) const {
        std::vector<MadePoint> made;
        for (const Ring& ring : rings_) {
            check_interrupted();
            for (size_t i = 0; i < ring.points.size(); ++i) {
                const size_t next = (i + 1) % ring.points.size();
                if (!are_neighbours(ring, i, next) || (is_sure && !is_smooth(ring, i, next))) continue;
                const OnRing end{true, {ring.points[next], ring.points[next]}, {1, 0}, 0, 1 / ring.views[next].range};
                for (int line = 1; line <= lines; ++line)
                    made.push_back(blend(ring.points[i], end, line / (lines + 1.0)));
            }
        }
        return made;
    }

    void place(const MadePoint& point, float* to) const {
        Vec3d at;
        for (size_t j = 0; j < 3 && point.sources[j] >= 0; ++j)
            at = at + point.weights[j] * to_vec3(cloud_.positions.data() + 3 * int64_t{point.sources[j]});
        store(at, to);
    }

private:
    Vec3d world(int32_t i) const { return {cloud_.world(i, 0), cloud_.world(i, 1), cloud_.world(i, 2)}; }

    /// Of two points in the order of their azimuths.
    bool are_neighbours(const Ring& ring, size_t first, size_t second) const {
        const geometry::SweepView &a = ring.views[first], &b = ring.views[second];
        const double angle = angle_between(a.azimuth, b.azimuth);
        if (angle <= 0 || angle > kWidestStep * step_) return false;
        const double near = std::min(a.range, b.range), far = std::max(a.range, b.range);
        return std::atan2(near * std::sin(angle), far - near * std::cos(angle)) > kGrazing;
    }

    OnRing at(const Ring& ring, double azimuth) const {
        const size_t n = ring.points.size();
        const auto found =
            std::lower_bound(ring.views.begin(), ring.views.end(), azimuth,
                             [](const geometry::SweepView& view, double angle) { return view.azimuth < angle; });
        const size_t second = static_cast<size_t>(found - ring.views.begin()) % n, first = (second + n - 1) % n;
        const geometry::SweepView &a = ring.views[first], &b = ring.views[second];
        const double before = angle_between(a.azimuth, azimuth), after = angle_between(azimuth, b.azimuth);
        if (!are_neighbours(ring, first, second)) {
            // Beside an edge, one of them may be near enough alone.
            const bool is_first = before < after;
            const geometry::SweepView& nearer = is_first ? a : b;
            const int32_t point = ring.points[is_first ? first : second];
            return {std::min(before, after) < 0.6 * step_, {point, point}, {1, 0}, nearer.elevation, 1 / nearer.range};
        }
        const double share = before / (before + after);
        return {true,
                {ring.points[first], ring.points[second]},
                {1 - share, share},
                (1 - share) * a.elevation + share * b.elevation,
                (1 - share) / a.range + share / b.range};
    }

    /// Whether the surface from point i of ring r to a place on the next ring is told by them and the rings beyond.
    bool is_one_surface(size_t r, size_t i, const OnRing& below) const {
        const geometry::SweepView& from = rings_[r].views[i];
        const SeenAt here{from.elevation, 1 / from.range}, there{below.elevation, below.nearness};
        const double spacing = spacing_at(rings_[r].points[i], below.points[0]);
        const double gap = length(world(rings_[r].points[i]) - world(below.points[0]));
        if (here.angle <= there.angle || gap > std::max(widest_, kWidestGap * spacing)) return false;
        std::optional<SeenAt> before, behind;
        if (r > 0)
            if (const OnRing above = at(rings_[r - 1], from.azimuth); above.is_known)
                before = {above.elevation, above.nearness};
        if (r + 2 < rings_.size())
            if (const OnRing next = at(rings_[r + 2], from.azimuth); next.is_known)
                behind = {next.elevation, next.nearness};
        return is_sure(before, here, there, behind, spacing);
    }

    /// Likewise from a point of a ring to the next one.
    bool is_smooth(const Ring& ring, size_t first, size_t second) const {
        const size_t n = ring.points.size(), last = (first + n - 1) % n, next = (second + 1) % n;
        const auto seen = [&](size_t i) {
            const double angle = ring.views[i].azimuth - ring.views[first].azimuth;
            return SeenAt{std::remainder(angle, kTurn), 1 / ring.views[i].range};
        };
        std::optional<SeenAt> before, behind;
        if (are_neighbours(ring, last, first)) before = seen(last);
        if (are_neighbours(ring, second, next)) behind = seen(next);
        return is_sure(before, seen(first), seen(second), behind, spacing_at(ring.points[first], ring.points[second]));
    }

    double spacing_at(int32_t a, int32_t b) const {
        return std::max(spacings_[static_cast<size_t>(a)], spacings_[static_cast<size_t>(b)]);
    }

    /// Whether the lines through one of two places and the one on its other side foretell the other place, so well that
    /// the middle is known to kSureTo of a spacing.
    static bool is_sure(const std::optional<SeenAt>& before, const SeenAt& first, const SeenAt& second,
                        const std::optional<SeenAt>& behind, double spacing) {
        double strays = -1;  // in ranges
        if (before && before->angle != first.angle) strays = std::max(strays, stray(*before, first, second));
        if (behind && behind->angle != second.angle) strays = std::max(strays, stray(*behind, second, first));
        return strays >= 0 && strays / kCurveInTangent * 2 / (first.nearness + second.nearness) < kSureTo * spacing;
    }
    /// How far a place is from the line through two others, in its range.
    static double stray(const SeenAt& a, const SeenAt& b, const SeenAt& foretold) {
        const double slope = (b.nearness - a.nearness) / (b.angle - a.angle);
        return std::abs(b.nearness + slope * (foretold.angle - b.angle) - foretold.nearness) / foretold.nearness;
    }

    /// In the direction that is `share` of the way from a point to a place on a ring.
    MadePoint blend(int32_t from, const OnRing& to, double share) const {
        const double near_from = 1 / length(world(from) - sensor_);
        std::array<double, 3> weights = {(1 - share) * near_from, 0, 0};
        for (size_t j = 0; j < 2; ++j)
            if (to.shares[j] > 0) weights[j + 1] = share * to.shares[j] / length(world(to.points[j]) - sensor_);
        const double all = weights[0] + weights[1] + weights[2];
        MadePoint made;
        made.sources = {from, to.points[0], to.shares[1] > 0 ? to.points[1] : -1};
        for (size_t j = 0; j < 3; ++j) made.weights[j] = static_cast<float>(weights[j] / all);
        made.gap = length(world(from) - world(to.points[to.shares[1] > 0.5]));
        return made;
    }

    const PointCloud& cloud_;
    Vec3d sensor_;
    double step_;
    double widest_ = 0;  // gap between rings that is filled in any case
    std::span<const float> spacings_;
    std::vector<Ring> rings_;
};

/// As many of them as wanted, those in the widest gaps, in their order.
void keep_widest(std::vector<MadePoint>& made, int64_t wanted) {
    const auto n = static_cast<int64_t>(made.size());
    if (n <= wanted) return;
    std::vector<int32_t> order(made.size());
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = static_cast<int32_t>(i);
    const auto gap = [&](int32_t i) { return made[static_cast<size_t>(i)].gap; };
    std::nth_element(order.begin(), order.begin() + wanted, order.end(),
                     [&](int32_t a, int32_t b) { return gap(a) != gap(b) ? gap(a) > gap(b) : a < b; });
    order.resize(static_cast<size_t>(wanted));
    std::sort(order.begin(), order.end());
    std::vector<MadePoint> kept;
    for (const int32_t i : order) kept.push_back(made[static_cast<size_t>(i)]);
    made = std::move(kept);
}

/// As many of them as wanted, in equal steps.
void keep_evenly(std::vector<MadePoint>& made, int64_t wanted) {
    const auto n = static_cast<int64_t>(made.size());
    for (int64_t i = 0; i < wanted; ++i) made[static_cast<size_t>(i)] = made[static_cast<size_t>(i * n / wanted)];
    made.resize(static_cast<size_t>(wanted));
}

}  // namespace

std::optional<SweepPoints> points_of_sweep(const PointCloud& cloud, const geometry::SweepRings& sweep,
                                           std::span<const float> spacings, int64_t wanted,
                                           const UpsampleOptions& options) {
    const Sweep rings(cloud, sweep, spacings, options);
    const double ratio = 1 + static_cast<double>(wanted) / static_cast<double>(cloud.size());
    const int lines = std::max(1, static_cast<int>(std::ceil(ratio - 1e-6)) - 1);
    SweepPoints points;
    std::vector<MadePoint> all = rings.between(lines, points.dropped);
    keep_widest(all, wanted);
    points.between = static_cast<int64_t>(all.size());
    const int64_t missing = wanted - points.between;
    std::vector<MadePoint> along;
    for (const bool is_sure : {true, false})
        for (int more = 1; more <= (is_sure ? kMostSure : kMostAlong) && static_cast<int64_t>(along.size()) < missing;
             more *= 2)
            along = rings.along(more, is_sure);
    if (static_cast<int64_t>(along.size()) < missing) return std::nullopt;
    keep_evenly(along, missing);
    all.insert(all.end(), along.begin(), along.end());
    points.made.width = 3;
    for (const MadePoint& point : all) {
        float at[3];
        rings.place(point, at);
        points.made.points.insert(points.made.points.end(), at, at + 3);
        points.made.parents.push_back(point.sources[0]);
        points.made.sources.insert(points.made.sources.end(), point.sources.begin(), point.sources.end());
        points.made.weights.insert(points.made.weights.end(), point.weights.begin(), point.weights.end());
    }
    return points;
}

}  // namespace stipple::tasks
