#pragma once
// What the ways of stipple register, a pair, several scans and a sequence of sweeps, share.

#include "stipple/cli/common/files.h"
#include "stipple/tasks/register.h"

namespace stipple::cli {

struct RegisterOptions {
    InputFile source, target;
    std::vector<std::string> more;
    OutputFile output;
    std::string method = "auto", metric = "generalised", kernel = "cauchy", kernel_scale = "auto", scale = "auto";
    std::string init, transform_to, truth, picture, model;
    int64_t sampled = 0;
    std::vector<double> voxel, max_distance;
    double trim = 1, min_fitness = geometry::RegistrationLimits{}.min_fitness, min_confidence = 0.5;
    int iterations = 0;
    bool require_convergence = false, keep_failed = false, pose_graph = false, sequence = false;
    std::string map, calibration;
    double map_voxel = 0, max_range = 0;
};

/// Throws Error{bad_argument} for what makes no sense.
tasks::RegisterOptions register_options(const RegisterOptions& options);

/// What `learned` asks a network, --model or the shipped one: loaded at once where the method is learned, with the
/// first question where it is auto. Nothing for other methods, and for auto where no network is there. Throws
/// Error{bad_argument} for options of networks where none is asked.
void add_network(const RegisterOptions& options, const Common& common, tasks::RegisterOptions& wanted);

/// For both ways but --sequence: throws Error{bad_argument} without a target, and for options of --sequence.
void require_clouds(const RegisterOptions& options);

/// Reads a scan, counts points that are not finite in a warning; Error{bad_file} for one without finite points. What
/// the JSON tells about it goes to `field`.
Mesh load_scan(const InputFile& input, const Common& common, Result& result, Json& field);

Json json_of(const geometry::RigidTransform& transform);
double length(const geometry::Vector3& v);

/// Errors against a known pose, in both conventions of the angle.
Json json_of(const tasks::PoseError& error);
std::string text_of(const tasks::PoseError& error);

/// Clouds in one, each in its colour: blue, orange, and so on.
PointCloud in_colors(const std::vector<const PointCloud*>& clouds);
/// Two pictures of several clouds side by side.
Image before_and_after(const std::vector<const PointCloud*>& before, const std::vector<const PointCloud*>& after,
                       const std::string& caption);

/// stipple register --pose-graph.
Result run_register_scans(const RegisterOptions& options, const Common& common);

/// stipple register --sequence.
Result run_register_sequence(const RegisterOptions& options, const Common& common);

}  // namespace stipple::cli
