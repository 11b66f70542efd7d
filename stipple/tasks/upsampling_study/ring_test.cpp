#include "stipple/tasks/upsampling_study/ring_test.h"

#include <algorithm>
#include <cmath>

#include "stipple/geometry/planes.h"
#include "stipple/tasks/upsampling_study/local_plane.h"

namespace stipple::tasks::study {
namespace {

constexpr size_t kFewestRings = 16;
constexpr int64_t kOfRing = 5;  // points of a ring that a plane is fitted to
constexpr double kFarthest = 30, kFlat = 0.05, kOffPlane = 0.1, kNearPlane = 0.1;  // metres
constexpr double kCentimetres = 100;

PointCloud points_of(const PointCloud& cloud, const std::vector<int32_t>& rows) {
    return select(cloud, {rows.data(), {static_cast<int64_t>(rows.size())}});
}
double range(const RingTest& test, const PointCloud& cloud, int64_t i) {
    return geometry::seen_from(test.rings.sensor, {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)}).range;
}

/// [n] distances of new points to the sweep's planes; NaN beyond 30 m, at edges, and where a ring is missing.
/// `nearest_of` them are their nearest points of the sweep.
std::vector<double> distances_to_planes(const PointCloud& made, const std::vector<int32_t>& nearest_of,
                                        const RingTest& test) {
    std::vector<size_t> ring_of(static_cast<size_t>(test.sweep.size()), 0);
    for (size_t r = 0; r < test.rings.rings.size(); ++r)
        for (const int32_t i : test.rings.rings[r]) ring_of[static_cast<size_t>(i)] = r;
    std::vector<std::vector<int32_t>> made_at(test.rings.rings.size());
    for (size_t i = 0; i < nearest_of.size(); ++i)
        if (range(test, made, static_cast<int64_t>(i)) < kFarthest)
            made_at[ring_of[static_cast<size_t>(nearest_of[i])]].push_back(static_cast<int32_t>(i));
    std::vector<double> distances(nearest_of.size(), NAN);
    for (size_t r = 1; r + 1 < made_at.size(); ++r) {
        if (made_at[r].empty()) continue;
        const PointCloud places = points_of(made, made_at[r]);
        std::vector<std::vector<Vec3d>> around(made_at[r].size());
        for (size_t ring = r - 1; ring <= r + 1; ++ring) {
            const PointCloud points = points_of(test.sweep, test.rings.rings[ring]);
            const Nearest found = nearest(places, points, kOfRing);
            for (size_t i = 0; i < around.size(); ++i)
                for (int64_t j = 0; j < kOfRing; ++j)
                    around[i].push_back(point_of(points, found.indices.view()(static_cast<int64_t>(i), j)));
        }
        for (size_t i = 0; i < around.size(); ++i)
            if (const LocalPlane plane = fit_plane(around[i]); plane.rms <= kFlat)
                distances[static_cast<size_t>(made_at[r][i])] =
                    plane.distance(point_of(places, static_cast<int64_t>(i)));
    }
    return distances;
}

double mean_of_known(const std::vector<double>& values) {
    double sum = 0, count = 0;
    for (const double value : values)
        if (!std::isnan(value)) sum += value, count += 1;
    return count > 0 ? sum / count : NAN;
}

/// Of points near a plane their mean distance from it.
double flatness(const PointCloud& cloud, const geometry::PlaneSegment& plane) {
    std::vector<double> near;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        double distance = plane.offset;
        for (int axis = 0; axis < 3; ++axis) distance += plane.normal[static_cast<size_t>(axis)] * cloud.world(i, axis);
        if (std::abs(distance) < kNearPlane) near.push_back(std::abs(distance));
    }
    return mean_of_known(near);
}

}  // namespace

RingTest leave_out_rings(PointCloud sweep) {
    std::optional<geometry::SweepRings> rings = geometry::find_sweep_rings(sweep);
    STIPPLE_REQUIRE(rings, "this is no sweep of a spinning LiDAR: its rings were not found");
    STIPPLE_REQUIRE(rings->rings.size() >= kFewestRings, "{} rings: of {} or more every second one is left out",
                    rings->rings.size(), kFewestRings);
    RingTest test;
    test.rings = std::move(*rings);
    test.is_left.assign(static_cast<size_t>(sweep.size()), 0);
    for (size_t r = 1; r < test.rings.rings.size(); r += 2)
        for (const int32_t i : test.rings.rings[r]) test.is_left[static_cast<size_t>(i)] = 1;
    std::vector<int32_t> kept;
    for (int32_t i = 0; i < static_cast<int32_t>(sweep.size()); ++i)
        if (!test.is_left[static_cast<size_t>(i)]) kept.push_back(i);
    test.halved = points_of(sweep, kept);
    test.sweep = std::move(sweep);
    return test;
}

std::array<double, 10> columns_of(const RingScores& s) {
    return {static_cast<double>(s.made),
            s.at_left,
            s.error_left,
            s.error_all,
            s.invented,
            s.unsupported,
            s.cover,
            s.intensity,
            s.plane,
            s.plane_input};
}

RingScores measure_by_rings(const PointCloud& output, const RingTest& test) {
    const Nearest to_input = nearest(output, test.halved, 1);
    std::vector<int32_t> rows;
    for (int64_t i = 0; i < output.size(); ++i)
        if (to_input.squares.data()[i] > 0) rows.push_back(static_cast<int32_t>(i));
    STIPPLE_REQUIRE(!rows.empty(), "the output has no new points");
    const PointCloud made = points_of(output, rows);
    const double count = static_cast<double>(made.size());

    const std::vector<double> spacings = scan_spacings(test.sweep);
    const Nearest to_sweep = nearest(made, test.sweep, 1);
    const std::vector<int32_t> nearest_of(to_sweep.indices.data(), to_sweep.indices.data() + made.size());
    const std::vector<double> errors = distances_to_planes(made, nearest_of, test);
    const Attribute *intensity = find(made.attributes, "intensity"),
                    *measured = find(test.sweep.attributes, "intensity");
    RingScores scores;
    scores.made = made.size();
    std::vector<double> left, intensities;
    for (size_t i = 0; i < nearest_of.size(); ++i) {
        const int64_t at = nearest_of[i];
        if (std::sqrt(to_sweep.squares.data()[i]) >= kInventedFrom * spacings[static_cast<size_t>(at)]) {
            scores.invented += 100 / count;
            if (!(errors[i] < kOffPlane)) scores.unsupported += 100 / count;
        }
        if (!test.is_left[static_cast<size_t>(at)]) continue;
        scores.at_left += 100 / count;
        left.push_back(errors[i]);
        if (intensity && measured)
            intensities.push_back(std::abs(intensity->value(static_cast<int64_t>(i)) - measured->value(at)));
    }
    scores.error_left = kCentimetres * mean_of_known(left);
    scores.error_all = kCentimetres * mean_of_known(errors);
    scores.intensity = mean_of_known(intensities);

    const Nearest to_output = nearest(test.sweep, output, 1);
    std::vector<double> cover;
    for (int64_t i = 0; i < test.sweep.size(); ++i)
        if (test.is_left[static_cast<size_t>(i)] && range(test, test.sweep, i) < kFarthest)
            cover.push_back(std::sqrt(to_output.squares.data()[i]));
    scores.cover = kCentimetres * mean_of_known(cover);
    const geometry::PlaneSegments planes = geometry::find_planes(test.halved, {.distance = kNearPlane, .count = 1});
    scores.plane = scores.plane_input = NAN;
    if (!planes.planes.empty()) {
        scores.plane = kCentimetres * flatness(made, planes.planes[0]);
        scores.plane_input = kCentimetres * flatness(test.halved, planes.planes[0]);
    }
    return scores;
}

}  // namespace stipple::tasks::study
