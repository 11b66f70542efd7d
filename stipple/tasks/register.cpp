#include "stipple/tasks/register.h"

#include <cmath>

#include "stipple/tasks/small_files.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;

struct KernelName {
    geometry::RobustKernel kernel;
    const char* name;
};
constexpr KernelName kKernels[] = {{geometry::RobustKernel::none, "none"},
                                   {geometry::RobustKernel::huber, "huber"},
                                   {geometry::RobustKernel::tukey, "tukey"},
                                   {geometry::RobustKernel::cauchy, "cauchy"},
                                   {geometry::RobustKernel::geman_mcclure, "geman-mcclure"}};

void judge(const RegisterOptions& options, Registration& registration) {
    geometry::RegistrationLimits limits;
    limits.min_fitness = options.min_fitness;
    registration.verdict = geometry::judge(registration.found, limits);
    if (options.require_convergence && !registration.found.converged())
        registration.verdict.state = geometry::RegistrationState::failed;
    if (registration.verdict.state == geometry::RegistrationState::failed)
        registration.failure = Error(ErrorCode::check_failed, registration.verdict.text(),
                                     "start nearer to the true pose, or widen the greatest distance of pairs");
}

}  // namespace

Registration register_clouds(const PointCloud& source, const PointCloud& target, const RegisterOptions& options) {
    STIPPLE_REQUIRE(options.iterations >= 0, "{} iterations: at least 1 is possible", options.iterations);
    STIPPLE_REQUIRE(options.min_fitness >= 0 && options.min_fitness <= 1, "a fitness is 0 to 1, not {}",
                    options.min_fitness);
    geometry::IcpOptions icp = options.icp;
    if (icp.levels.empty() && options.scale > 0) icp.levels = geometry::automatic_levels(options.scale);
    if (options.iterations > 0) {
        if (icp.levels.empty() && geometry::rms_radius(target) > 0)
            icp.levels = geometry::automatic_levels(geometry::rms_radius(target));
        for (geometry::IcpLevel& level : icp.levels) level.iterations = options.iterations;
    }
    const geometry::IcpTarget prepared(target, icp);
    Registration registration;
    registration.levels = prepared.options().levels;
    registration.found = geometry::icp(source, prepared, options.initial);
    judge(options, registration);
    return registration;
}

std::vector<geometry::IcpLevel> levels_of(const std::vector<double>& max_distances, const std::vector<double>& voxels) {
    constexpr int kIterations = 50;
    STIPPLE_REQUIRE(voxels.empty() || voxels.size() == max_distances.size(), "{} voxels for {} greatest distances",
                    voxels.size(), max_distances.size());
    std::vector<geometry::IcpLevel> levels;
    for (size_t i = 0; i < max_distances.size(); ++i) {
        const double voxel = voxels.empty() ? 0 : voxels[i], distance = max_distances[i];
        STIPPLE_REQUIRE(voxel >= 0 && std::isfinite(voxel), "a voxel's edge must be from 0, got {}", voxel);
        STIPPLE_REQUIRE(distance > 0 && std::isfinite(distance), "a greatest distance must be above 0, got {}",
                        distance);
        levels.push_back({voxel, distance, kIterations});
    }
    return levels;
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const KernelName& known : kKernels) names.emplace_back(known.name);
    return names;
}

geometry::RobustKernel kernel_by_name(std::string_view name) {
    std::string names;
    for (const KernelName& known : kKernels) {
        if (name == known.name) return known.kernel;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    }
    throw Error(ErrorCode::bad_argument, fmt::format("unknown kernel {}", name), "kernels: " + names);
}

PoseError pose_error(const RigidTransform& found, const RigidTransform& truth, const PointCloud& cloud) {
    PoseError error;
    error.degrees = geometry::rotation_angle(geometry::inverse(truth) * found) * (180 / M_PI);
    const geometry::Vector3 &a = found.translation, &b = truth.translation;
    error.translation = std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const geometry::Vector3 place = {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)}, p = found(place),
                                q = truth(place);
        const double sq = (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) + (p[2] - q[2]) * (p[2] - q[2]);
        if (!std::isfinite(sq)) continue;
        sum += sq;
        ++finite;
    }
    error.rms = finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite));
    return error;
}

RigidTransform load_transform(const std::string& path) {
    const std::string text = load_text(path, 65536, "a transform of 4 x 4 numbers");
    try {
        return geometry::parse_transform(text);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

}  // namespace stipple::tasks
