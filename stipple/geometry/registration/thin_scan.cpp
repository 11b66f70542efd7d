#include "stipple/geometry/thin_scan.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/icp.h"
#include "stipple/geometry/normals.h"
#include "stipple/geometry/registration/each_of.h"
#include "stipple/geometry/registration/nearest_points.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::geometry {
namespace {

constexpr int kNormalNeighbours = 16;

const Attribute* normals_of(const PointCloud& cloud) {
    const Attribute* normal = find(cloud.attributes, "normal");
    return normal && normal->dtype() == DType::f32 && normal->components() == 3 ? normal : nullptr;
}

void require_scan(const PointCloud& cloud) {
    STIPPLE_REQUIRE(cloud.positions.device() == Device{}, "thin_scan: the cloud must be on the CPU");
    STIPPLE_REQUIRE(cloud.size() == 0 || cloud.positions.size(1) == 3, "thin_scan: the cloud must be [n, 3]");
}

int64_t cells_of(const PointCloud& cloud, double voxel) {
    return ops::voxel_grid(cloud.positions.view(), static_cast<float>(voxel)).cells.rows();
}

/// Turns normals to the side of the mean of the cloud's own in each cell.
void turn_to_own(const PointCloud& cloud, const ops::VoxelGrid& grid, View<float, 2> normals) {
    Array<float, 2> own({grid.cells.rows(), 3});
    ops::voxel_centroids(grid, normals_of(cloud)->as<float>(), own.view());
    for (int64_t i = 0; i < own.size(0); ++i) {
        const float* a = own.data() + 3 * i;
        float* b = normals.data() + 3 * i;
        const float dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        if (dot < 0)
            for (int axis = 0; axis < 3; ++axis) b[axis] = -b[axis];
    }
}

/// Turns normals to the side of a place.
void turn_to(const Vector3& place, View<const float, 2> points, View<float, 2> normals) {
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        float* m = normals.data() + 3 * i;
        double dot = 0;
        for (int axis = 0; axis < 3; ++axis) dot += m[axis] * (place[axis] - p[axis]);
        if (dot < 0)
            for (int axis = 0; axis < 3; ++axis) m[axis] = -m[axis];
    }
}

struct SightCounts {
    int64_t measured = 0, free = 0;
};

/// The points of one scan by the sensor of the other.
SightCounts look_at(const ThinScan& points, const RigidTransform& pose, const ThinScan& seen) {
    SightCounts counts;
    if (!seen.sensor) return counts;
    const RigidTransform local = between_origins(pose, points.origin, seen.origin);
    for (int64_t i = 0; i < points.size(); ++i) {
        const float* p = points.points.data() + 3 * i;
        const SensorView::Sight sight = seen.sensor->look_at(local({p[0], p[1], p[2]}));
        counts.measured += sight.is_measured;
        counts.free += sight.is_free;
    }
    return counts;
}

}  // namespace

bool has_normals(const PointCloud& cloud) {
    return normals_of(cloud) != nullptr;
}

double median_spacing(const PointCloud& cloud) {
    require_scan(cloud);
    constexpr int64_t kSome = 1024, kNeighbours = 8;  // several, because scans hold points twice
    const int64_t n = cloud.size();
    if (n < 2) return 0;
    const int64_t stride = (n + kSome - 1) / kSome, some = (n + stride - 1) / stride;
    const ops::PointIndex index(ops::Clouds(cloud.positions.view()));
    Array<float, 2> queries({some, 3});
    for (int64_t i = 0; i < some; ++i) std::copy_n(cloud.positions.data() + 3 * i * stride, 3, queries.data() + 3 * i);
    const int64_t k = std::min(kNeighbours, n);
    Array<int32_t, 2> indices({some, k});
    Array<float, 2> distances_sq({some, k});
    ops::knn(index, queries.view(), indices.view(), distances_sq.view());
    std::vector<float> nearest;
    for (int64_t i = 0; i < some; ++i)
        for (int64_t j = 0; j < k; ++j) {
            const float distance = distances_sq.data()[i * k + j];
            if (!(distance > 0) || !std::isfinite(distance)) continue;
            nearest.push_back(distance);
            break;
        }
    if (nearest.empty()) return 0;
    const auto middle = nearest.begin() + static_cast<int64_t>(nearest.size() / 2);
    std::nth_element(nearest.begin(), middle, nearest.end());
    return std::sqrt(double{*middle});
}

double common_spacing(const PointCloud& a, const PointCloud& b) {
    double spacing[2] = {};
    each_of(a, b, [&](int64_t i, const PointCloud& cloud) { spacing[i] = median_spacing(cloud); });
    return std::max(spacing[0], spacing[1]);
}

double common_voxel(const PointCloud& a, const PointCloud& b, int64_t most) {
    return common_voxel(a, b, most, common_spacing(a, b));
}

double common_voxel(const PointCloud& a, const PointCloud& b, int64_t most, double spacing) {
    require_scan(a);
    require_scan(b);
    STIPPLE_REQUIRE(most >= 1, "common_voxel: at most {} points", most);
    const double radius = std::min(rms_radius(a), rms_radius(b));
    if (!(radius > 0) || !std::isfinite(radius)) return 0;
    constexpr double kShare = 16, kSpacings = 1.5;
    double voxel = std::max(radius / kShare, kSpacings * spacing);
    for (int round = 0; round < 6; ++round) {  // a surface has a quarter of the cells at twice the edge
        int64_t counts[2] = {};
        each_of(a, b, [&](int64_t i, const PointCloud& cloud) { counts[i] = cells_of(cloud, voxel); });
        const int64_t cells = std::max(counts[0], counts[1]);
        if (cells <= most + most / 10) break;
        voxel *= std::max(1.05, std::sqrt(static_cast<double>(cells) / static_cast<double>(most)));
    }
    return voxel;
}

ThinScan thin_scan(const PointCloud& cloud, double voxel, bool own_normals) {
    require_scan(cloud);
    const ops::VoxelGrid grid = ops::voxel_grid(cloud.positions.view(), static_cast<float>(voxel));
    Array<float, 2> points({grid.cells.rows(), 3}), normals({grid.cells.rows(), 3});
    ops::voxel_centroids(grid, cloud.positions.view(), points.view());
    estimate_normals(points.view(), normals.view(), {}, kNormalNeighbours, static_cast<float>(3 * voxel));
    std::optional<SensorView> sensor;
    if (own_normals && has_normals(cloud)) {
        turn_to_own(cloud, grid, normals.view());
    } else {
        const Vector3 place = {-cloud.origin[0], -cloud.origin[1], -cloud.origin[2]};
        sensor = SensorView::of(points.view(), normals.view(), place, voxel);
        if (sensor)
            turn_to(place, points.view(), normals.view());
        else
            orient_consistently(points.view(), normals.view(), kNormalNeighbours);
    }
    ops::PointIndex index{ops::Clouds(points.view())};
    return {std::move(points), std::move(normals), cloud.origin, voxel, std::move(index), std::move(sensor)};
}

PoseSupport support_of(const ThinScan& source, const ThinScan& target, const RigidTransform& pose, int sign) {
    return support_of(source, target, nearest_points(source, target, pose, kSupportReach * target.voxel), sign);
}

double seen_through(const ThinScan& source, const ThinScan& target, const RigidTransform& pose) {
    const SightCounts forth = look_at(source, pose, target), back = look_at(target, inverse(pose), source);
    const int64_t measured = forth.measured + back.measured;
    return measured > 0 ? static_cast<double>(forth.free + back.free) / static_cast<double>(measured) : 0;
}

}  // namespace stipple::geometry
