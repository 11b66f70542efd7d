#include "stipple/tasks/shape_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/core/rng.h"

namespace stipple::tasks {
namespace {

constexpr int kPlanes = 8;
constexpr size_t kMostPoints = 512;  // of the measures that compare points in pairs
constexpr double kThinnest = 0.02;

struct Point {
    float x, y, z;
};

double log_length(double length) {
    return std::log(std::max(length, kThinnest));
}

/// Between the values around it, linearly. Reorders values.
double quantile(std::vector<float>& values, double share) {
    const double at = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<size_t>(at);
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(low), values.end());
    const double first = values[low];
    if (low + 1 == values.size()) return first;
    const double second = *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(low) + 1, values.end());
    return first + (at - static_cast<double>(low)) * (second - first);
}

/// At most kMostPoints of them, in random order.
std::vector<Point> some_of(View<const float, 2> points) {
    const int64_t n = points.size(0);
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
    const size_t count = std::min(order.size(), kMostPoints);
    const Rng rng(0, 0x53484150);
    std::vector<Point> some;
    for (size_t i = 0; i < count; ++i) {
        std::swap(order[i], order[i + rng.below(i, static_cast<uint32_t>(order.size() - i))]);
        const int64_t row = order[i];
        some.push_back({points(row, 0), points(row, 1), points(row, 2)});
    }
    return some;
}

/// From each of `from` to the nearest of `to`.
double mean_nearest(const std::vector<Point>& from, const std::vector<Point>& to) {
    double sum = 0;
    for (const Point& a : from) {
        float least = std::numeric_limits<float>::max();
        for (const Point& b : to) {
            const float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
            least = std::min(least, dx * dx + dy * dy + dz * dz);
        }
        sum += std::sqrt(static_cast<double>(least));
    }
    return sum / static_cast<double>(from.size());
}

/// Mean distance after the mirror at the upright plane across (cos, sin): through the centroid or through the middle
/// of what is seen along it, whichever is better.
double mirrored_distance(const std::vector<Point>& from, const std::vector<Point>& to, float cos, float sin) {
    std::vector<float> along;
    for (const auto* half : {&from, &to})
        for (const Point& p : *half) along.push_back(p.x * cos + p.y * sin);
    const float middle = static_cast<float>(quantile(along, 0.02) + quantile(along, 0.98)) / 2;
    double best = std::numeric_limits<double>::max();
    std::vector<Point> mirrored(from.size());
    for (const float place : {0.0f, middle}) {
        for (size_t i = 0; i < from.size(); ++i) {
            const float twice = 2 * (from[i].x * cos + from[i].y * sin - place);
            mirrored[i] = {from[i].x - twice * cos, from[i].y - twice * sin, from[i].z};
        }
        best = std::min(best, mean_nearest(mirrored, to));
    }
    return best;
}

/// The largest difference in height from a point to the four nearest on the ground plan: the median over all points.
double step_height(const std::vector<Point>& points) {
    constexpr size_t kNeighbours = 4;
    std::vector<float> steps;
    for (const Point& a : points) {
        std::array<std::pair<float, float>, kNeighbours> nearest;  // squared distance, step
        nearest.fill({std::numeric_limits<float>::max(), 0.0f});
        for (const Point& b : points) {
            if (&a == &b) continue;
            const float dx = a.x - b.x, dy = a.y - b.y, square = dx * dx + dy * dy;
            if (square >= nearest.back().first) continue;
            nearest.back() = {square, std::abs(a.z - b.z)};
            for (size_t k = kNeighbours - 1; k > 0 && nearest[k].first < nearest[k - 1].first; --k)
                std::swap(nearest[k], nearest[k - 1]);
        }
        float step = 0;
        for (const auto& [square, height] : nearest) step = std::max(step, height);
        steps.push_back(step);
    }
    return quantile(steps, 0.5);
}

}  // namespace

ShapeMeasures measure_shape(View<const float, 2> points) {
    STIPPLE_REQUIRE(points.size(0) >= 1 && points.size(1) == 3, "measure_shape: points are [n, 3], n > 0, not [{}, {}]",
                    points.size(0), points.size(1));
    std::vector<float> height;
    for (int64_t i = 0; i < points.size(0); ++i) height.push_back(points(i, 2));
    const std::vector<Point> some = some_of(points);
    // A cloud of one point is its own mirror image.
    const size_t half = std::max<size_t>(1, some.size() / 2);
    const std::vector<Point> first(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(half)),
        second(some.end() - static_cast<std::ptrdiff_t>(half), some.end());
    const double spacing = std::max(1e-4, mean_nearest(first, second));
    double best = std::numeric_limits<double>::max(), sum = 0;
    for (int plane = 0; plane < kPlanes; ++plane) {
        const double angle = 3.14159265358979323846 * plane / kPlanes;
        const double distance = std::max(1e-4, mirrored_distance(first, second, static_cast<float>(std::cos(angle)),
                                                                 static_cast<float>(std::sin(angle))));
        best = std::min(best, distance);
        sum += distance / kPlanes;
    }
    return {quantile(height, 0.05),
            quantile(height, 0.95),
            std::log(best / spacing),
            std::log(sum / spacing),
            log_length(spacing * std::sqrt(static_cast<double>(half))),
            log_length(step_height(some))};
}

}  // namespace stipple::tasks
