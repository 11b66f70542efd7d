#include "stipple/geometry/sweep_rings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace stipple::geometry {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr size_t kFewestRings = 8, kMostRings = 512, kFewestPoints = 16;
constexpr int64_t kMostOfSweep = 4'000'000;
constexpr double kMost = 0.9;  // share of the points that are in rings, and of those that lie above the next one
// This share of the steps along rings is at most so many times the median one.
constexpr double kRegular = 0.9, kLargestStep = 1.5;
constexpr double kBand = 0.05 * kPi / 180;  // of elevations that are told apart
// A band is empty that has less than this share of the points that all bands have in the mean.
constexpr double kEmpty = 0.05;

using Rings = std::vector<std::vector<int32_t>>;

/// The points of a cloud that a sensor may have seen.
struct SeenPoints {
    Vec3d sensor;
    std::vector<SweepView> views;  // of all points
    std::vector<int32_t> points;   // those that are finite and not at the sensor, in their order

    const SweepView& view(int32_t point) const { return views[static_cast<size_t>(point)]; }
};

SeenPoints see_points(const PointCloud& cloud) {
    SeenPoints seen;
    if (cloud.facts.viewpoint)
        for (int axis = 0; axis < 3; ++axis) seen.sensor[axis] = (*cloud.facts.viewpoint)[static_cast<size_t>(axis)];
    for (int64_t i = 0; i < cloud.size(); ++i) {
        seen.views.push_back(seen_from(seen.sensor, {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)}));
        const double range = seen.views.back().range;
        if (std::isfinite(range) && range > 0) seen.points.push_back(static_cast<int32_t>(i));
    }
    return seen;
}

Rings rings_by_attribute(const SeenPoints& seen, const Attribute& attribute) {
    std::map<double, std::vector<int32_t>> rings;
    for (const int32_t i : seen.points)
        if (std::isfinite(attribute.value(i))) rings[attribute.value(i)].push_back(i);
    Rings all;
    for (auto& [number, ring] : rings) all.push_back(std::move(ring));
    return all;
}

/// A ring ends where the azimuth, which grows (or falls) along it, passes through 0.
Rings rings_by_order(const SeenPoints& seen) {
    const auto step_to = [&](size_t i) {
        return seen.view(seen.points[i]).azimuth - seen.view(seen.points[i - 1]).azimuth;
    };
    int64_t ups = 0;
    for (size_t i = 1; i < seen.points.size(); ++i) ups += step_to(i) > 0 ? 1 : -1;
    const double sense = ups >= 0 ? 1 : -1;
    Rings rings(1);
    for (size_t i = 0; i < seen.points.size(); ++i) {
        if (i > 0 && sense * step_to(i) < -kPi) rings.emplace_back();
        rings.back().push_back(seen.points[i]);
    }
    return rings;
}

Rings rings_by_elevation(const SeenPoints& seen) {
    const auto band_of = [&](int32_t i) { return static_cast<size_t>((seen.view(i).elevation + kPi / 2) / kBand); };
    std::vector<size_t> counts(static_cast<size_t>(kPi / kBand) + 2, 0), ring_of(counts.size(), 0);
    size_t first = counts.size(), last = 0;
    for (const int32_t i : seen.points) {
        const size_t band = band_of(i);
        ++counts[band];
        first = std::min(first, band), last = std::max(last, band);
    }
    const double empty = kEmpty * static_cast<double>(seen.points.size()) / static_cast<double>(last - first + 1);
    size_t rings = 0, filled = 0;  // ring_of counts from 1, as 0 is none
    for (size_t band = first; band <= last; ++band) {
        if (static_cast<double>(counts[band]) <= empty) continue;
        if (band == first || ring_of[band - 1] == 0) ++rings;
        ring_of[band] = rings;
        ++filled;
    }
    if (2 * filled > last - first + 1) return {};  // bands without gaps between them
    Rings all(rings);
    for (const int32_t i : seen.points)
        if (const size_t ring = ring_of[band_of(i)]) all[ring - 1].push_back(i);
    return all;
}

double quantile(std::vector<double> values, double share) {
    const auto at = values.begin() + static_cast<int64_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}
double median(std::vector<double> values) {
    return quantile(std::move(values), 0.5);
}

/// From the highest to the lowest, and in each by azimuth.
void order_rings(const SeenPoints& seen, Rings& rings) {
    std::vector<std::pair<double, size_t>> heights;
    for (size_t r = 0; r < rings.size(); ++r) {
        std::vector<double> elevations;
        for (const int32_t i : rings[r]) elevations.push_back(seen.view(i).elevation);
        heights.emplace_back(-median(std::move(elevations)), r);
    }
    std::sort(heights.begin(), heights.end());
    Rings ordered;
    for (const auto& [height, r] : heights) {
        std::vector<int32_t>& ring = ordered.emplace_back(std::move(rings[r]));
        std::stable_sort(ring.begin(), ring.end(),
                         [&](int32_t a, int32_t b) { return seen.view(a).azimuth < seen.view(b).azimuth; });
    }
    rings = std::move(ordered);
}

/// The median angle between neighbours of a ring; nothing where the others are not about as large, as in thinned rings.
std::optional<double> regular_step(const SeenPoints& seen, const Rings& rings) {
    std::vector<double> steps;
    for (const std::vector<int32_t>& ring : rings)
        for (size_t i = 1; i < ring.size(); ++i)
            steps.push_back(seen.view(ring[i]).azimuth - seen.view(ring[i - 1]).azimuth);
    const double step = median(steps), upper = quantile(std::move(steps), kRegular);
    if (step <= 0 || upper > kLargestStep * step) return std::nullopt;
    return step;
}

/// How far each point lies above the next ring, at the point of that with the next azimuth.
std::vector<double> heights_above_next(const SeenPoints& seen, const Rings& rings) {
    std::vector<double> gaps;
    for (size_t r = 0; r + 1 < rings.size(); ++r)
        for (const int32_t i : rings[r]) {
            const std::vector<int32_t>& below = rings[r + 1];
            const auto next =
                std::lower_bound(below.begin(), below.end(), seen.view(i).azimuth,
                                 [&](int32_t other, double azimuth) { return seen.view(other).azimuth < azimuth; });
            const int32_t other = next == below.end() ? below.front() : *next;
            gaps.push_back(seen.view(i).elevation - seen.view(other).elevation);
        }
    return gaps;
}

/// Puts rings and points in order; nothing unless they are those of a sweep.
std::optional<SweepRings> sweep_of(const SeenPoints& seen, Rings rings) {
    std::erase_if(rings, [](const std::vector<int32_t>& ring) { return ring.size() < kFewestPoints; });
    size_t points = 0;
    for (const std::vector<int32_t>& ring : rings) points += ring.size();
    if (rings.size() < kFewestRings || rings.size() > kMostRings ||
        static_cast<double>(points) < kMost * static_cast<double>(seen.points.size()))
        return std::nullopt;
    order_rings(seen, rings);
    std::vector<double> gaps = heights_above_next(seen, rings);
    const auto below = static_cast<double>(std::count_if(gaps.begin(), gaps.end(), [](double gap) { return gap > 0; }));
    const std::optional<double> step = regular_step(seen, rings);
    if (!step || below < kMost * static_cast<double>(gaps.size()) || *step >= median(std::move(gaps)))
        return std::nullopt;
    return SweepRings{seen.sensor, std::move(rings), *step};
}

}  // namespace

SweepView seen_from(Vec3d sensor, Vec3d point) {
    const Vec3d to = point - sensor;
    const double flat = std::hypot(to.x, to.y), azimuth = std::atan2(to.y, to.x);
    return {azimuth < 0 ? azimuth + 2 * kPi : azimuth, std::atan2(to.z, flat), std::hypot(flat, to.z)};
}

std::optional<SweepRings> find_sweep_rings(const PointCloud& cloud) {
    if (cloud.size() > kMostOfSweep) return std::nullopt;
    const SeenPoints seen = see_points(cloud);
    if (seen.points.size() < kFewestRings * kFewestPoints) return std::nullopt;
    if (const Attribute* ring = find(cloud.attributes, "ring"); ring && ring->components() == 1)
        return sweep_of(seen, rings_by_attribute(seen, *ring));
    if (auto sweep = sweep_of(seen, rings_by_order(seen))) return sweep;
    return sweep_of(seen, rings_by_elevation(seen));
}

}  // namespace stipple::geometry
