#include "stipple/geometry/icp.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/geometry/registration/icp_cloud.h"
#include "stipple/geometry/registration/icp_step.h"

namespace stipple::geometry {

struct IcpTarget::Level {
    std::shared_ptr<const IcpCloud> cloud;
    double spacing = 0;  // of the last level only
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
        STIPPLE_REQUIRE(level.share > 0 && level.share <= 1,
                        "icp: a level's share of the points must be above 0, to 1, got {}", level.share);
    }
}

void require_cpu(const char* name, const PointCloud& cloud) {
    STIPPLE_REQUIRE(cloud.positions.device() == Device{}, "icp: the {} must be on the CPU", name);
    STIPPLE_REQUIRE(cloud.size() == 0 || cloud.positions.size(1) == 3, "icp: the {} must be [n, 3]", name);
}

double relative_change(double a, double b) {
    return std::abs(a - b) / std::max({std::abs(a), std::abs(b), std::numeric_limits<double>::min()});
}

int neighbours_for(const IcpOptions& options, bool is_target) {
    const bool wanted = options.metric == IcpMetric::generalised || (is_target && options.metric == IcpMetric::plane);
    return wanted ? options.normal_neighbours : 0;
}

/// The steps of one level, from result.transform (source to target, both about their origins).
void run_level(const IcpCloud& from, const IcpTarget& target, int number, IcpResult& result) {
    const IcpOptions& options = target.options();
    const IcpLevel& level = options.levels[number];
    const IcpTarget::Level& to = *target.levels()[number];
    const auto stride = static_cast<int64_t>(std::ceil(1 / level.share));
    const ops::cpu::Leaves some = stride > 1 ? every(from.points.tree().leaves, stride) : ops::cpu::Leaves();
    Pairs pairs(to.cloud->points, stride > 1 ? some : from.points.tree().leaves,
                static_cast<float>(level.max_distance));
    std::vector<std::array<float, 3>> some_normals;
    for (int64_t rank = 0; stride > 1 && !from.normals.empty() && rank < pairs.size(); ++rank)
        some_normals.push_back(from.normals[rank * stride]);
    const Extent& extent = from.extent;
    const StepInput input{pairs,       to.cloud->points, to.cloud->normals, stride > 1 ? some_normals : from.normals,
                          extent.mean, extent.radius};
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
                result.evidence = evidence_of(input, present, std::max(level.voxel, to.spacing), level.max_distance);
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
    return {{radius / 32, radius / 2, 30, 0.25}, {radius / 32, radius / 8, 50}};
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
    for (const IcpLevel& level : options_.levels) {
        std::shared_ptr<const IcpCloud> thinned;
        for (size_t i = 0; i < levels_.size() && !thinned; ++i)
            if (options_.levels[i].voxel == level.voxel) thinned = levels_[i]->cloud;
        if (!thinned) thinned = icp_cloud(cloud, level.voxel, neighbours_for(options_, true));
        const bool is_last = levels_.size() + 1 == options_.levels.size();
        const double spacing = is_last ? spacing_of(thinned->points) : 0;
        levels_.push_back(std::make_shared<Level>(Level{std::move(thinned), spacing}));
    }
}

IcpSource::IcpSource(const PointCloud& cloud, const IcpTarget& target) : origin_(cloud.origin) {
    require_cpu("source", cloud);
    const std::vector<IcpLevel>& wanted = target.options().levels;
    for (const IcpLevel& level : wanted) {
        std::shared_ptr<const IcpCloud> thinned;
        for (size_t i = 0; i < levels_.size() && !thinned; ++i)
            if (wanted[i].voxel == level.voxel) thinned = levels_[i];
        if (!thinned) thinned = icp_cloud(cloud, level.voxel, neighbours_for(target.options(), false));
        levels_.push_back(std::move(thinned));
    }
}

IcpResult icp(const IcpSource& source, const IcpTarget& target, const RigidTransform& initial) {
    STIPPLE_REQUIRE(source.levels().size() == target.levels().size(), "icp: a source of {} levels, a target of {}",
                    source.levels().size(), target.levels().size());
    IcpResult result;
    result.stop = IcpStop::too_few;
    result.transform = between_origins(initial, source.origin(), target.origin());
    for (int level = 0; level < static_cast<int>(target.levels().size()); ++level) {
        run_level(*source.levels()[level], target, level, result);
        if (result.stop == IcpStop::too_few) break;
    }
    for (int axis = 0; axis < 3; ++axis) result.center[axis] += target.origin()[axis];
    result.transform = in_world(result.transform, source.origin(), target.origin());
    return result;
}

IcpResult icp(const PointCloud& source, const IcpTarget& target, const RigidTransform& initial) {
    return icp(IcpSource(source, target), target, initial);
}

IcpResult icp(const PointCloud& source, const PointCloud& target, const IcpOptions& options,
              const RigidTransform& initial) {
    return icp(source, IcpTarget(target, options), initial);
}

}  // namespace stipple::geometry
