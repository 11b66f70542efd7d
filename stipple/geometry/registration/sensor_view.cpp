#include "stipple/geometry/sensor_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/ops/knn.h"
#include "stipple/ops/point_index.h"

namespace stipple::geometry {
namespace {

constexpr float kUnseen = std::numeric_limits<float>::infinity();

double length_of(const Vector3& v) {
    return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

Vector3 way_to(View<const float, 2> points, int64_t i, const Vector3& place) {
    const float* p = points.data() + 3 * i;
    return {p[0] - place[0], p[1] - place[1], p[2] - place[2]};
}

/// Neighbouring points of a surface, whose normals say how it bends.
class Bends {
public:
    Bends(View<const float, 2> points, View<const float, 2> normals)
        : points_(points), normals_(normals), nearest_({points.size(0), kNeighbours}) {
        const ops::PointIndex index{ops::Clouds(points)};
        Array<float, 2> distances_sq({points.size(0), kNeighbours});
        ops::knn(index, points, nearest_.view(), distances_sq.view());
    }

    /// The share of neighbours whose normals, both turned to the place, point opposite ways: a surface that goes on
    /// beyond where it turns its back to the place, so that it cannot have been seen from there.
    double turned_share(const Vector3& place) const {
        constexpr double kOpposite = -0.7;
        const int64_t n = points_.size(0);
        std::vector<float> sides(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) {
            const Vector3 way = way_to(points_, i, place);
            const float* m = normals_.data() + 3 * i;
            sides[i] = m[0] * way[0] + m[1] * way[1] + m[2] * way[2] < 0 ? 1.0f : -1.0f;
        }
        int64_t pairs = 0, turned = 0;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t k = 0; k < kNeighbours; ++k) {
                const int64_t j = nearest_.data()[i * kNeighbours + k];
                if (j < 0 || j == i) continue;
                const float *a = normals_.data() + 3 * i, *b = normals_.data() + 3 * j;
                ++pairs;
                turned += sides[i] * sides[j] * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) < kOpposite;
            }
        return pairs > 0 ? static_cast<double>(turned) / static_cast<double>(pairs) : 1;
    }

private:
    static constexpr int64_t kNeighbours = 5;
    View<const float, 2> points_, normals_;
    Array<int32_t, 2> nearest_;
};

/// The median turned share of places as far from the middle as `place`, 50 and 90 degrees around it: what a place has
/// that saw nothing.
double turned_share_elsewhere(const Bends& bends, const Vector3& middle, const Vector3& place) {
    const Vector3 way = {place[0] - middle[0], place[1] - middle[1], place[2] - middle[2]};
    const int least = std::abs(way[0]) <= std::abs(way[1]) && std::abs(way[0]) <= std::abs(way[2]) ? 0
                      : std::abs(way[1]) <= std::abs(way[2])                                       ? 1
                                                                                                   : 2;
    Vector3 side = {}, up = {};
    side[least] = 1;
    up = {way[1] * side[2] - way[2] * side[1], way[2] * side[0] - way[0] * side[2],
          way[0] * side[1] - way[1] * side[0]};
    side = {up[1] * way[2] - up[2] * way[1], up[2] * way[0] - up[0] * way[2], up[0] * way[1] - up[1] * way[0]};
    std::vector<double> shares;
    for (const double degrees : {50.0, 90.0})
        for (const Vector3& axis : {side, up})
            for (const double sign : {-1.0, 1.0})
                shares.push_back(bends.turned_share(rotation_about(axis, sign * degrees * M_PI / 180, middle)(place)));
    std::nth_element(shares.begin(), shares.begin() + static_cast<int64_t>(shares.size() / 2), shares.end());
    return shares[shares.size() / 2];
}

}  // namespace

SensorView::SensorView(const Vector3& place, double voxel, int side)
    : place_(place), voxel_(voxel), side_(side), nearest_(static_cast<size_t>(6 * side * side), kUnseen) {}

int64_t SensorView::cell_of(const Vector3& way, int& u, int& v) const {
    int axis = 0;
    for (int i = 1; i < 3; ++i)
        if (std::abs(way[i]) > std::abs(way[axis])) axis = i;
    const double far = std::abs(way[axis]);
    if (!(far > 0) || !std::isfinite(far)) return -1;
    const auto cell = [&](double other) {
        return std::clamp(static_cast<int>((other / far + 1) / 2 * side_), 0, side_ - 1);
    };
    u = cell(way[(axis + 1) % 3]);
    v = cell(way[(axis + 2) % 3]);
    const int face = 2 * axis + (way[axis] < 0 ? 1 : 0);
    return (int64_t{face} * side_ + v) * side_ + u;
}

void SensorView::widen() {
    constexpr int kFewest = 5;  // of nine cells: at the border of what was seen nothing is known
    around_.assign(nearest_.size(), 0.0f);
    for (int face = 0; face < 6; ++face)
        for (int v = 0; v < side_; ++v)
            for (int u = 0; u < side_; ++u) {
                const int64_t at = (int64_t{face} * side_ + v) * side_ + u;
                if (nearest_[at] == kUnseen) continue;
                float least = kUnseen;
                int seen = 0;
                for (int y = std::max(v - 1, 0); y <= std::min(v + 1, side_ - 1); ++y)
                    for (int x = std::max(u - 1, 0); x <= std::min(u + 1, side_ - 1); ++x) {
                        const float depth = nearest_[(int64_t{face} * side_ + y) * side_ + x];
                        least = std::min(least, depth);
                        seen += depth != kUnseen;
                    }
                if (seen >= kFewest) around_[at] = least;
            }
}

std::optional<SensorView> SensorView::of(View<const float, 2> points, View<const float, 2> normals,
                                         const Vector3& place, double voxel) {
    constexpr double kCellVoxels = 1.5, kHidden = 0.2, kTurned = 0.03, kOfOthers = 0.45, kNearest = 0.05, kSteep = 8,
                     kCone = 0.4;
    constexpr int kLeastSide = 8, kMostSide = 256;
    const int64_t n = points.size(0);
    if (n < 100 || !(voxel > 0)) return {};
    std::vector<double> depths(static_cast<size_t>(n));
    Vector3 mean = {}, middle = {};  // of the directions, of the points
    for (int64_t i = 0; i < n; ++i) {
        const Vector3 way = way_to(points, i, place);
        depths[i] = length_of(way);
        for (int axis = 0; axis < 3; ++axis) {
            mean[axis] += way[axis] / std::max(depths[i], 1e-300) / static_cast<double>(n);
            middle[axis] += (place[axis] + way[axis]) / static_cast<double>(n);
        }
    }
    std::vector<double> sorted = depths;
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[sorted.size() / 2];
    // Nothing is at the sensor itself.
    if (!(median > 0) || sorted[static_cast<size_t>(n / 100)] < kNearest * median) return {};
    // From inside, a whole body looks like a room.
    if (length_of(mean) < kCone) return {};
    const double angle = kCellVoxels * voxel / median;
    SensorView view(place, voxel, std::clamp(static_cast<int>(2 / angle), kLeastSide, kMostSide));
    int u = 0, v = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t cell = view.cell_of(way_to(points, i, place), u, v);
        if (cell >= 0) view.nearest_[cell] = std::min(view.nearest_[cell], static_cast<float>(depths[i]));
    }
    int64_t hidden = 0;
    for (int64_t i = 0; i < n; ++i) {
        const Vector3 way = way_to(points, i, place);
        const int64_t cell = view.cell_of(way, u, v);
        if (cell < 0) continue;
        const float* m = normals.data() + 3 * i;
        const double cosine = std::abs(m[0] * way[0] + m[1] * way[1] + m[2] * way[2]) / depths[i];
        const double steep =
            cosine > 0 ? std::min(kSteep, std::sqrt(1 - std::min(1.0, cosine * cosine)) / cosine) : kSteep;
        const double width = 2.0 / view.side_ * depths[i];
        hidden += depths[i] > view.nearest_[cell] + 3 * voxel + 2 * width * steep;
    }
    if (static_cast<double>(hidden) > kHidden * static_cast<double>(n)) return {};
    const Bends bends(points, normals);
    const double turned = bends.turned_share(place);
    if (turned > kTurned || turned > kOfOthers * turned_share_elsewhere(bends, middle, place)) return {};
    view.widen();
    return view;
}

SensorView::Sight SensorView::look_at(const Vector3& point) const {
    constexpr double kMargin = 2.5, kShare = 0.02;
    const Vector3 way = {point[0] - place_[0], point[1] - place_[1], point[2] - place_[2]};
    int u = 0, v = 0;
    const int64_t cell = cell_of(way, u, v);
    if (cell < 0 || !(around_[cell] > 0)) return {};
    const double depth = length_of(way);
    return {true, depth * (1 + kShare) + kMargin * voxel_ < around_[cell]};
}

}  // namespace stipple::geometry
