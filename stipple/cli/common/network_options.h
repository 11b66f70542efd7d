#pragma once
// Options of the commands that run networks on clouds.

#include <map>

#include "stipple/cli/command.h"
#include "stipple/engine/precision.h"
#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/pose.h"

namespace stipple::cli {

/// What a network sees of a cloud, and how the clouds are read.
struct CloudArguments {
    tasks::CloudOptions clouds;
    std::string from;
};
/// --points, --sample, --no-normalise, --from.
void add_cloud_options(Arguments& app, CloudArguments& arguments);

/// With --seed; throws Error{bad_argument} for values that make no sense.
tasks::CloudOptions cloud_options(const CloudArguments& arguments, const Common& common);
/// Files are read with a bar in `progress`, which must outlive it.
data::ReadClouds reading(const CloudArguments& arguments, FileProgress& progress);
/// Clouds for calibration and comparison, with progress.
tasks::LoadedBatch load_clouds(const std::vector<data::CloudEntry>& entries, int64_t count,
                               const tasks::CloudOptions& options, const CloudArguments& arguments,
                               const Common& common, io::Warnings& warnings);

/// --precision of one network.
struct PrecisionArgument {
    std::string text = "fp32";
    Option option;

    /// None unless given: a model runs in fp32 then, an engine file as it was built.
    std::optional<engine::Precision> wanted() const;
};
void add_precision(Arguments& app, PrecisionArgument& precision);

/// Describes a pose for --json: which axis is up, and the rotation.
Json pose_json(const tasks::Pose& pose, const tasks::Axis& network_up);
/// A copy of the positions as the pose has them, z up, for pictures.
PointCloud upright(const PointCloud& cloud, const tasks::Pose& pose, const tasks::Axis& network_up);

/// --size: pixels of one cloud in a picture, 48 to 2048; 0 leaves it to the command. require_picture_size() throws
/// Error{bad_argument} for others.
void add_picture_size(Arguments& app, int64_t& size);
void require_picture_size(int64_t size);

/// KEY=VALUE... of an option. Throws Error{bad_argument} for one without = and for a key that is set twice.
std::map<std::string, std::string> pairs_of(const std::vector<std::string>& settings, const char* option);

/// --set KEY=VALUE...: options of a model; throws as above.
std::map<std::string, std::string> model_options(const std::vector<std::string>& settings);

}  // namespace stipple::cli
