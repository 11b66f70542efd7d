#pragma once
// What the ways of stipple register, a pair, several scans and a sequence of sweeps, share.

#include "stipple/cli/common/files.h"
#include "stipple/tasks/register.h"

namespace stipple::cli {

/// Holds what the command line says: files, and the options of the tasks.
struct RegisterCommand {
    InputFile source, target;
    std::vector<std::string> more;
    OutputFile output;
    tasks::RegisterOptions how;
    double min_confidence = 0.5;
    std::string init, transform_to, truth, picture;
    bool keep_failed = false, pose_graph = false, sequence = false;
    std::string map, calibration;
    double map_voxel = 0, max_range = 0;
};

/// For both ways but --sequence: throws Error{bad_argument} without a target, and for options of --sequence.
void require_clouds(const RegisterCommand& options);

/// Reads a scan, counts points that are not finite in a warning; Error{bad_file} for one without finite points. What
/// the JSON tells about it goes to `field`.
Mesh load_scan(const InputFile& input, const Common& common, Result& result, Json& field);

double length(const geometry::Vector3& v);

/// Errors against a known pose, in both conventions of the angle.
std::string text_of(const tasks::PoseError& error);

/// Clouds in one, each in its colour: blue, orange, and so on.
PointCloud in_colors(const std::vector<const PointCloud*>& clouds);
/// Two pictures of several clouds side by side.
Image draw_registration(const std::vector<const PointCloud*>& before, const std::vector<const PointCloud*>& after,
                        const std::string& caption);

/// stipple register --pose-graph.
Result run_register_scans(const RegisterCommand& options, const Common& common);

/// stipple register --sequence.
Result run_register_sequence(const RegisterCommand& options, const Common& common);

}  // namespace stipple::cli
