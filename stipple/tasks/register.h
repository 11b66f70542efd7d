#pragma once
// The rigid motion that lays one cloud on another, and what is doubtful about it.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/core/fields.h"
#include "stipple/geometry/global_registration.h"
#include "stipple/geometry/pose_evidence.h"
#include "stipple/geometry/registration_verdict.h"

namespace stipple::tasks {

/// automatic  with a start: icp; unless that is good, the best pose near the start. Without: icp; unless that is good,
///            learned for clouds that may be one whole shape, then global, which judges the poses of both among its own
/// icp        ICP from the start that is given, or from where the clouds lie
/// global     register_globally(), from any pose, then ICP
/// learned    the start that a network gives (learned_pose.h), then ICP
enum class RegisterMethod { automatic, icp, global, learned };
inline constexpr const char* kRegisterMethodWords[] = {"auto", "icp", "global", "learned"};
/// Throws Error{bad_argument} that lists the names.
RegisterMethod method_by_name(std::string_view name);
const char* to_string(RegisterMethod method);

/// A pose that a network found, and what it says of it: "PCRNet, 8 iterations on 1,024 and 1,024 points".
struct LearnedStart {
    geometry::RigidTransform pose;
    std::string story;
};

struct RegisterOptions {
    RegisterMethod method = RegisterMethod::icp;
    geometry::GlobalOptions global;
    /// Levels: empty for automatic ones. How plane to plane and Cauchy's kernel were chosen: bench/results/geometry.md.
    geometry::IcpOptions icp{.metric = geometry::IcpMetric::generalised, .kernel = geometry::RobustKernel::cauchy};
    double scale = 0;                                 // RMS radius that automatic levels fit; 0: the target's
    int iterations = 0;                               // most steps of each level; 0: the level's own
    std::optional<geometry::RigidTransform> initial;  // a start: source to target, world coordinates
    std::function<LearnedStart(const PointCloud& source, const PointCloud& target)> learned;  // empty: no network
    bool require_convergence = false;                                 // without it a failure, else a doubt
    double min_fitness = geometry::RegistrationLimits{}.min_fitness;  // below is a failure

    // As a command or a request says it; register_options() makes levels and a network of them.
    std::vector<double> max_distances, voxels;  // of the levels, coarse to fine; empty: automatic ones
    std::string model;                          // of the learned method: weights by path or name; "": the shipped ones
    int64_t sampled = 0;                        // points that a sampler chooses for the network; 0: up to 1024
};
const Fields& register_fields();
/// The options with their levels and, for methods that may ask one, with the network: loaded at once where the method
/// is learned or a model is named, else with its first question, and not at all where none is installed. Throws
/// Error{bad_argument} for options out of range and for those that contradict each other.
RegisterOptions register_options(RegisterOptions options, const std::string& device);

/// What speaks for a pose, by scans thinned to cells of one edge (geometry/pose_evidence.h).
struct PoseTrust {
    geometry::PoseEvidence evidence;  // other: 0 for icp alone, which meets no other pose
    double confidence = 0;            // pose_confidence()
    double voxel = 0;                 // edge of the cells; 0 for clouds that have no surface

    bool is_believed() const { return confidence >= geometry::kGood; }
};

/// Another answer to where a cloud lies.
struct OtherPose {
    geometry::RigidTransform transform;
    double likelihood = 0;  // beside the pose that was chosen, up to 1
};

struct Registration {
    RegisterMethod method = RegisterMethod::icp;  // that the pose comes from: not automatic
    std::string story;                            // automatic: why; learned: by what; "" otherwise
    PoseTrust trust;
    int64_t poses = 0;  // distinct ones that were judged; 1 for icp and learned
    /// Of these the ones that are at least half as likely as what was found, the likeliest first: of a symmetric shape,
    /// or where a scan repeats itself. As the search found them, before the last ICP.
    std::vector<OtherPose> others;
    geometry::IcpResult found;
    std::vector<geometry::IcpLevel> levels;  // that were run
    geometry::RegistrationVerdict verdict;   // good, doubtful or failed, and why
    std::optional<Error> failure;            // check_failed: the verdict, or not what the options ask for

    // What was asked.
    RegisterMethod asked = RegisterMethod::icp;
    geometry::IcpMetric metric = geometry::IcpMetric::plane;
    geometry::RobustKernel kernel = geometry::RobustKernel::none;
};
const Fields& registration_fields();
/// Rows of the 4 x 4 matrix.
Json to_json(const geometry::RigidTransform& transform);

/// Points that are not finite do not count. Throws Error{bad_argument} for options out of range, and for learned
/// without a network. CPU, but for the network.
///
/// Automatically a network is asked where both clouds have at most 8192 points and RMS radii within a tenth of each
/// other, as two looks at one whole shape have; its pose counts where it is sure by itself, else it is one of those
/// that are searched.
///
/// good      its confidence is at least geometry::kGood, and nothing is left open: act on it
/// doubtful  its confidence is at least geometry::kWritten: look at it
/// failed    less, too few pairs, or not what the options ask for
/// Low overlap and another pose that fits as well lower the confidence, they are no failure of their own.
Registration register_clouds(const PointCloud& source, const PointCloud& target, const RegisterOptions& options);

/// What the searches of two clouds begin with, made before: alike, by geometry::search_scan() with the options' radii.
struct PreparedPair {
    const geometry::SearchScan &source, &target;
};
/// The same where each cloud is registered to many.
Registration register_clouds(const PointCloud& source, const PointCloud& target, const RegisterOptions& options,
                             const PreparedPair& prepared);

/// Levels from greatest distances of pairs, coarse to fine, and the edges of the cells that thin both clouds (none, or
/// one for each). Throws Error{bad_argument} for lengths that are none and counts that differ.
std::vector<geometry::IcpLevel> levels_of(const std::vector<double>& max_distances, const std::vector<double>& voxels);

/// Throws Error{bad_argument} that lists geometry::kRobustKernelWords.
geometry::RobustKernel kernel_by_name(std::string_view name);

/// How far a pose is from the true one.
struct PoseError {
    double degrees = 0;      // of the rotation between them: the geodesic angle
    double doubled = 0;      // twice that, as SampleNet and PCRNet report (metrics/registration.h)
    double translation = 0;  // length of the difference of the translations
    double rms = 0;          // RMS distance of the cloud's finite points between both poses
};
const Fields& pose_error_fields();
PoseError pose_error(const geometry::RigidTransform& found, const geometry::RigidTransform& truth,
                     const PointCloud& cloud);

/// A 4 x 4 matrix as text; "-" is standard input. Throws Error{bad_file}.
geometry::RigidTransform load_transform(const std::string& path);

}  // namespace stipple::tasks
