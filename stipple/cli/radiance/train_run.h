#pragma once
// What `stipple radiance train` was asked for, and how a run folder remembers it.

#include "stipple/cli/radiance/scene_arguments.h"
#include "stipple/radiance/train.h"

namespace stipple::cli {

struct RadianceTrainOptions {
    SceneArguments scene;
    std::string output, mode = "auto", background = "auto";
    std::vector<std::string> settings;
    int64_t voxels = 0;
    bool deterministic = false;

    std::string checkpoints, resume, on_save_error = "stop";
    int64_t checkpoint_every = 0, render_every = 0, max_steps = 0;
    int render_views = 3;
    bool strict = false;

    bool has_run() const { return !checkpoints.empty() || !resume.empty(); }
};

/// KEY=VALUE of --set.
void set_train_option(radiance::TrainOptions& options, const std::string& assignment);

/// The options of training: the mode's, then --voxels, then --set. The background is the scene's matter.
radiance::TrainOptions train_options(const RadianceTrainOptions& given, const std::string& mode, const Common& common);

/// config.toml of a run: [run] has what the command line said, [train], [coarse] and [fine] all numbers.
std::string run_config(const RadianceTrainOptions& given, const std::string& mode, Device device,
                       const radiance::TrainOptions& training);

/// What config.toml says. `given` are the arguments of now: those that may be given with --resume win.
struct ResumedTraining {
    RadianceTrainOptions options;
    std::string mode, device;
    radiance::TrainOptions training;
};
ResumedTraining resumed_training(const std::string& config, const RadianceTrainOptions& given);

}  // namespace stipple::cli
