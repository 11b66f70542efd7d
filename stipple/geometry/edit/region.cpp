#include "stipple/geometry/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/core/quoted.h"
#include "stipple/io/text.h"

namespace stipple::geometry {
namespace {

/// The edges of a polygon by slabs of y, so that a point is compared with the few that its level may cross.
class PolygonEdges {
public:
    explicit PolygonEdges(const Region::Polygon& corners) {
        if (corners.size() < 3) return;
        low_ = {HUGE_VAL, HUGE_VAL}, high_ = {-HUGE_VAL, -HUGE_VAL};
        for (const auto& corner : corners)
            for (int axis = 0; axis < 2; ++axis) {
                low_[axis] = std::min(low_[axis], corner[axis]);
                high_[axis] = std::max(high_[axis], corner[axis]);
            }
        slabs_.resize(std::min<size_t>(corners.size(), 4096));
        // Levels of a polygon that is flat in y are all in the first slab: no point is inside of it.
        scale_ = high_[1] > low_[1] ? static_cast<double>(slabs_.size()) / (high_[1] - low_[1]) : 0;
        if (!std::isfinite(scale_)) scale_ = 0;
        for (size_t i = 0; i < corners.size(); ++i) {
            const auto &a = corners[i], &b = corners[(i + 1) % corners.size()];
            if (a[1] == b[1]) continue;  // a level edge is crossed by no level
            const Edge edge = a[1] < b[1] ? Edge{a[0], a[1], b[0], b[1]} : Edge{b[0], b[1], a[0], a[1]};
            for (size_t slab = slab_of(edge.y0); slab <= slab_of(edge.y1); ++slab) slabs_[slab].push_back(edge);
        }
    }

    bool contains(double x, double y) const {
        if (x < low_[0] || x > high_[0] || y < low_[1] || y > high_[1]) return false;
        bool is_inside = false;
        for (const Edge& edge : slabs_[slab_of(y)]) {
            if (y < edge.y0 || y >= edge.y1) continue;
            // The edge from its lower to its upper end: the same for both polygons that share it.
            const double side = (edge.x1 - edge.x0) * (y - edge.y0) - (x - edge.x0) * (edge.y1 - edge.y0);
            if (side > 0) is_inside = !is_inside;
        }
        return is_inside;
    }

private:
    struct Edge {
        double x0, y0, x1, y1;  // y0 < y1
    };

    size_t slab_of(double y) const {
        return std::min(slabs_.size() - 1, static_cast<size_t>(std::max(0.0, (y - low_[1]) * scale_)));
    }

    std::array<double, 2> low_ = {}, high_ = {};
    double scale_ = 0;
    std::vector<std::vector<Edge>> slabs_;
};

bool all_finite(const std::array<double, 3>& v) {
    return std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2]);
}

}  // namespace

void require_region(const Region& region) {
    STIPPLE_REQUIRE(region.box || region.sphere || !region.polygon.empty(), "a region needs a box, sphere or polygon");
    if (region.box)
        for (int axis = 0; axis < 3; ++axis)
            STIPPLE_REQUIRE(region.box->min[axis] <= region.box->max[axis], "box: {} from {} to {} holds nothing",
                            "xyz"[axis], region.box->min[axis], region.box->max[axis]);
    if (region.sphere) {
        STIPPLE_REQUIRE(all_finite(region.sphere->centre), "sphere: the centre must be finite");
        STIPPLE_REQUIRE(region.sphere->radius >= 0 && std::isfinite(region.sphere->radius),
                        "sphere: the radius must be from 0, got {}", region.sphere->radius);
    }
    STIPPLE_REQUIRE(region.polygon.empty() || region.polygon.size() >= 3, "polygon: {} corners, at least 3",
                    region.polygon.size());
    for (const auto& corner : region.polygon)
        STIPPLE_REQUIRE(std::isfinite(corner[0]) && std::isfinite(corner[1]), "polygon: a corner is not finite");
}

std::vector<Side> sides_of(const PointCloud& cloud, const Region& region) {
    require_region(region);
    const PolygonEdges edges(region.polygon);
    std::vector<Side> sides(static_cast<size_t>(cloud.size()));
    parallel_for(cloud.size(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const std::array<double, 3> p = {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)};
            if (!all_finite(p)) {
                sides[i] = Side::nowhere;
                continue;
            }
            bool is_inside = true;
            for (int axis = 0; axis < 3 && region.box; ++axis)
                is_inside = is_inside && p[axis] >= region.box->min[axis] && p[axis] <= region.box->max[axis];
            if (is_inside && region.sphere) {
                double sum = 0;
                for (int axis = 0; axis < 3; ++axis)
                    sum += (p[axis] - region.sphere->centre[axis]) * (p[axis] - region.sphere->centre[axis]);
                is_inside = sum <= region.sphere->radius * region.sphere->radius;
            }
            if (is_inside && !region.polygon.empty()) is_inside = edges.contains(p[0], p[1]);
            sides[i] = is_inside ? Side::inside : Side::outside;
        }
    });
    return sides;
}

Region::Polygon parse_polygon(std::string_view text) {
    std::vector<double> numbers;
    const auto fail = [](int64_t line, const std::string& message) {
        throw Error(ErrorCode::bad_file, Place{{}, line}, message, "a corner is two numbers: x y");
    };
    const int64_t lines = io::for_each_word(text, [&](std::string_view word, int64_t line) {
        double value = 0;
        if (!io::parse_number(word, value) || !std::isfinite(value))
            fail(line, fmt::format("expected a number of a corner, found {}", in_quotes(word)));
        numbers.push_back(value);
    });
    if (numbers.size() % 2 != 0) fail(lines, fmt::format("{} numbers are not pairs of x and y", numbers.size()));
    Region::Polygon corners;
    for (size_t i = 0; i < numbers.size(); i += 2) corners.push_back({numbers[i], numbers[i + 1]});
    if (corners.size() > 1 && corners.front() == corners.back()) corners.pop_back();
    if (corners.size() < 3) fail(lines, fmt::format("a polygon has at least 3 corners, found {}", corners.size()));
    return corners;
}

}  // namespace stipple::geometry
