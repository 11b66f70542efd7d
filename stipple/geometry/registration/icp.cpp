#include "stipple/geometry/icp.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/normals.h"
#include "stipple/geometry/registration/icp_step.h"
#include "stipple/ops/knn.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::geometry {

struct IcpTarget::Level {
    PairTarget points;
    std::vector<std::array<float, 3>> normals;  // by slot
    double spacing = 0;                         // median distance of neighbours
};

namespace {

void require_options(const IcpOptions& options) {
    STIPPLE_REQUIRE(options.kernel_scale >= 0 && std::isfinite(options.kernel_scale),
                    "icp: the kernel's scale must be from 0, got {}", options.kernel_scale);
    STIPPLE_REQUIRE(options.trim > 0 && options.trim <= 1, "icp: trim must be above 0, to 1, got {}", options.trim);
    STIPPLE_REQUIRE(options.normal_neighbours >= 3 && options.normal_neighbours <= 128,
                    "icp: normals take 3 to 128 neighbours, got {}", options.normal_neighbours);
    STIPPLE_REQUIRE(options.motion_tolerance >= 0 && options.change_tolerance >= 0,
                    "icp: tolerances must be from 0, got {} and {}", options.motion_tolerance,
                    options.change_tolerance);
    for (const IcpLevel& level : options.levels) {
        STIPPLE_REQUIRE(level.voxel >= 0 && std::isfinite(level.voxel), "icp: a level's cells must be from 0, got {}",
                        level.voxel);
        STIPPLE_REQUIRE(level.max_distance > 0, "icp: a level's greatest distance must be above 0, got {}",
                        level.max_distance);
        STIPPLE_REQUIRE(level.iterations >= 0, "icp: {} iterations", level.iterations);
    }
}

void require_cpu(const char* name, const PointCloud& cloud) {
    STIPPLE_REQUIRE(cloud.positions.device() == Device{}, "icp: the {} must be on the CPU", name);
    STIPPLE_REQUIRE(cloud.size() == 0 || cloud.positions.size(1) == 3, "icp: the {} must be [n, 3]", name);
}

bool is_finite_row(const float* p) {
    return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
}

/// Mean and RMS distance from it of the finite rows.
struct Extent {
    Vector3 mean = {};
    double radius = 0;
};

Extent extent_of(View<const float, 2> points) {
    Extent extent;
    int64_t finite = 0;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        if (!is_finite_row(p)) continue;
        ++finite;
        for (int axis = 0; axis < 3; ++axis) extent.mean[axis] += p[axis];
    }
    if (finite == 0) return extent;
    for (double& number : extent.mean) number /= static_cast<double>(finite);
    double sum = 0;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        if (!is_finite_row(p)) continue;
        for (int axis = 0; axis < 3; ++axis) {
            const double d = p[axis] - extent.mean[axis];
            sum += d * d;
        }
    }
    extent.radius = std::sqrt(sum / static_cast<double>(finite));
    return extent;
}

/// The points of a level, and their normals where the cloud has some and they are wanted.
struct Thinned {
    Array<float, 2> points, normals;
};

Thinned thin(const PointCloud& cloud, double voxel, const Attribute* normal) {
    Thinned thinned;
    if (voxel == 0) {
        thinned.points = cloud.positions.clone();
        if (normal) {
            thinned.normals = Array<float, 2>({cloud.size(), 3});
            std::copy_n(normal->as<float>().data(), 3 * cloud.size(), thinned.normals.data());
        }
        return thinned;
    }
    const ops::VoxelGrid grid = ops::voxel_grid(cloud.positions.view(), static_cast<float>(voxel));
    thinned.points = Array<float, 2>({grid.cells.rows(), 3});
    ops::voxel_centroids(grid, cloud.positions.view(), thinned.points.view());
    if (normal) {
        thinned.normals = Array<float, 2>({grid.cells.rows(), 3});
        ops::voxel_centroids(grid, normal->as<float>(), thinned.normals.view());
    }
    return thinned;
}

/// The cloud's own normals, or nothing.
const Attribute* icp_normals(const PointCloud& cloud) {
    const Attribute* normal = find(cloud.attributes, "normal");
    return normal && normal->dtype() == DType::f32 && normal->components() == 3 ? normal : nullptr;
}

/// Estimates normals where there are none yet.
void fill_normals(Thinned& thinned, const IcpOptions& options) {
    if (thinned.normals.size(0) == thinned.points.size(0)) return;
    thinned.normals = Array<float, 2>({thinned.points.size(0), 3});
    estimate_normals(thinned.points.view(), thinned.normals.view(), {}, options.normal_neighbours);
}

/// Unit length, or zero for what has no direction.
std::array<float, 3> unit(const float* v) {
    const double length = std::sqrt(double{v[0]} * v[0] + double{v[1]} * v[1] + double{v[2]} * v[2]);
    if (!(length > 1e-6) || !std::isfinite(length)) return {};
    return {static_cast<float>(v[0] / length), static_cast<float>(v[1] / length), static_cast<float>(v[2] / length)};
}

/// The median distance from a point to the nearest other one, by some of the points.
double spacing_of(const PairTarget& target) {
    constexpr int64_t kSome = 1024;
    const int64_t n = target.size(), stride = (n + kSome - 1) / kSome;
    if (n < 2) return 0;
    const int64_t some = (n + stride - 1) / stride;
    Array<float, 2> queries({some, 3}), distances_sq({some, 2});
    Array<int32_t, 2> indices({some, 2});
    for (int64_t i = 0; i < some; ++i)
        for (int axis = 0; axis < 3; ++axis) queries.data()[3 * i + axis] = target.at(i * stride, axis);
    ops::knn(target.index(), queries.view(), indices.view(), distances_sq.view());
    std::vector<float> nearest(static_cast<size_t>(some));
    for (int64_t i = 0; i < some; ++i) nearest[i] = distances_sq.data()[2 * i + 1];
    std::nth_element(nearest.begin(), nearest.begin() + some / 2, nearest.end());
    return std::sqrt(double{nearest[some / 2]});
}

std::shared_ptr<const IcpTarget::Level> make_level(const PointCloud& cloud, const IcpLevel& level,
                                                   const IcpOptions& options, const Attribute* normal) {
    Thinned thinned = thin(cloud, level.voxel, normal);
    auto made = std::make_shared<IcpTarget::Level>(IcpTarget::Level{PairTarget(thinned.points.view()), {}, 0});
    made->spacing = spacing_of(made->points);
    if (options.metric == IcpMetric::point) return made;
    fill_normals(thinned, options);
    made->normals.resize(static_cast<size_t>(made->points.size()));
    for (int64_t slot = 0; slot < made->points.size(); ++slot)
        made->normals[slot] = unit(thinned.normals.data() + 3 * int64_t{made->points.index_at(slot)});
    return made;
}

double relative_change(double a, double b) {
    return std::abs(a - b) / std::max({std::abs(a), std::abs(b), std::numeric_limits<double>::min()});
}

/// The steps of one level, from result.transform (source to target, both about their origins).
void run_level(const PointCloud& source, const IcpTarget& target, int number, IcpResult& result) {
    const IcpOptions& options = target.options();
    const IcpLevel& level = options.levels[number];
    const IcpTarget::Level& to = *target.levels()[number];
    const bool has_planes = options.metric == IcpMetric::generalised;
    Thinned from = thin(source, level.voxel, has_planes ? icp_normals(source) : nullptr);
    const Extent extent = extent_of(from.points.view());
    Pairs pairs(to.points, from.points.view(), static_cast<float>(level.max_distance));
    std::vector<std::array<float, 3>> source_normals;
    if (has_planes) {
        fill_normals(from, options);
        source_normals.resize(static_cast<size_t>(pairs.size()));
        for (int64_t rank = 0; rank < pairs.size(); ++rank)
            source_normals[rank] = unit(from.normals.data() + 3 * int64_t{pairs.source_index(rank)});
    }
    const StepInput input{pairs, to.points, to.normals, source_normals, extent.mean, extent.radius};
    const bool is_last = number + 1 == static_cast<int>(options.levels.size());
    // Coarse levels are a start for the next: a hundredth of a cell will do.
    double small = options.motion_tolerance * extent.radius;
    if (!is_last && options.motion_tolerance > 0) small = std::max(small, 0.01 * level.voxel);
    RigidTransform& present = result.transform;
    result.stop = IcpStop::iterations;
    for (int i = 0;; ++i) {
        check_interrupted();
        const int64_t searched = pairs.update(present);
        const Step step = icp_step(input, present, options);
        const double fitness =
            pairs.size() == 0 ? 0 : static_cast<double>(step.within) / static_cast<double>(pairs.size());
        // The change that the last step brought.
        if (i > 0 && relative_change(fitness, result.fitness) < options.change_tolerance &&
            relative_change(step.rmse, result.rmse) < options.change_tolerance)
            result.stop = IcpStop::converged;
        result.fitness = fitness;
        result.rmse = step.rmse;
        result.pairs = step.within;
        result.information = step.information;
        result.center = step.center;
        result.undetermined = step.undetermined;
        if (!step.is_enough) result.stop = IcpStop::too_few;
        if (result.stop != IcpStop::iterations || i == level.iterations) {
            if (is_last)
                result.evidence =
                    evidence_of(input, present, 2 * std::max(level.voxel, to.spacing), level.max_distance);
            return;
        }
        present = step.motion * present;
        present.rotation = nearest_rotation(present.rotation);
        ++result.iterations;
        result.history.push_back({number, step.used, fitness, step.rmse, step.moved, searched});
        if (step.moved < small) result.stop = IcpStop::converged;  // told after the pairs of the new place are counted
    }
}

}  // namespace

std::vector<IcpLevel> automatic_levels(double radius) {
    STIPPLE_REQUIRE(radius > 0 && std::isfinite(radius), "automatic_levels: the radius must be above 0, got {}",
                    radius);
    return {{radius / 16, radius / 2, 30}, {radius / 32, radius / 8, 30}, {radius / 128, radius / 8, 50}};
}

double rms_radius(const PointCloud& cloud) {
    require_cpu("cloud", cloud);
    return extent_of(cloud.positions.view()).radius;
}

IcpTarget::IcpTarget(const PointCloud& cloud, const IcpOptions& options) : options_(options), origin_(cloud.origin) {
    require_options(options);
    require_cpu("target", cloud);
    if (options_.levels.empty()) {
        const double radius = rms_radius(cloud);
        // Points at one place have no size: whatever is near counts.
        options_.levels = radius > 0 ? automatic_levels(radius) : std::vector<IcpLevel>{{0, 1, 30}};
    }
    const Attribute* normal = options.metric == IcpMetric::point ? nullptr : icp_normals(cloud);
    for (const IcpLevel& level : options_.levels) levels_.push_back(make_level(cloud, level, options_, normal));
}

IcpResult icp(const PointCloud& source, const IcpTarget& target, const RigidTransform& initial) {
    require_cpu("source", source);
    IcpResult result;
    result.stop = IcpStop::too_few;
    result.transform = between_origins(initial, source.origin, target.origin());
    for (int level = 0; level < static_cast<int>(target.levels().size()); ++level) {
        run_level(source, target, level, result);
        if (result.stop == IcpStop::too_few) break;
    }
    for (int axis = 0; axis < 3; ++axis) result.center[axis] += target.origin()[axis];
    result.transform = in_world(result.transform, source.origin, target.origin());
    return result;
}

IcpResult icp(const PointCloud& source, const PointCloud& target, const IcpOptions& options,
              const RigidTransform& initial) {
    return icp(source, IcpTarget(target, options), initial);
}

}  // namespace stipple::geometry
