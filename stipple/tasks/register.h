#pragma once
// The rigid motion that lays one cloud on another, and what is doubtful about it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/geometry/registration_verdict.h"

namespace stipple::tasks {

struct RegisterOptions {
    geometry::IcpOptions icp;          // levels: empty for automatic ones
    double scale = 0;                  // RMS radius that automatic levels fit; 0: the target's
    int iterations = 0;                // most steps of each level; 0: the level's own
    geometry::RigidTransform initial;  // source to target, world coordinates
    bool require_convergence = false;  // without it a failure, else a doubt
    double min_fitness = geometry::RegistrationLimits{}.min_fitness;  // below is a failure
};

struct Registration {
    geometry::IcpResult found;
    std::vector<geometry::IcpLevel> levels;  // that were run
    geometry::RegistrationVerdict verdict;   // good, doubtful or failed, and why
    std::optional<Error> failure;            // check_failed: the verdict, or not what the options ask for
};

/// Points that are not finite do not count. Throws Error{bad_argument} for options out of range. CPU.
Registration register_clouds(const PointCloud& source, const PointCloud& target, const RegisterOptions& options);

/// Levels from greatest distances of pairs, coarse to fine, and the edges of the cells that thin both clouds (none, or
/// one for each). Throws Error{bad_argument} for lengths that are none and counts that differ.
std::vector<geometry::IcpLevel> levels_of(const std::vector<double>& max_distances, const std::vector<double>& voxels);

/// "none", "huber", "tukey", "cauchy", "geman-mcclure".
std::vector<std::string> kernel_names();
/// Throws Error{bad_argument} that lists the names.
geometry::RobustKernel kernel_by_name(std::string_view name);

/// How far a pose is from the true one.
struct PoseError {
    double degrees = 0;      // of the rotation between them
    double translation = 0;  // length of the difference of the translations
    double rms = 0;          // RMS distance of the cloud's finite points between both poses
};
PoseError pose_error(const geometry::RigidTransform& found, const geometry::RigidTransform& truth,
                     const PointCloud& cloud);

/// A 4 x 4 matrix as text; "-" is standard input. Throws Error{bad_file}.
geometry::RigidTransform load_transform(const std::string& path);

}  // namespace stipple::tasks
