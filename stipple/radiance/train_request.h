#pragma once
// A training as people ask for it: photographs, a mode, perhaps a run folder; and how a run folder remembers it.

#include "stipple/radiance/train.h"

namespace stipple::radiance {

/// automatic: fast on a GPU, small on a CPU. parity: as published.
enum class TrainMode { automatic, fast, quality, parity, small };
inline constexpr const char* kTrainModeWords[] = {"auto", "fast", "quality", "parity", "small"};

/// automatic: usual_background().
enum class BackgroundChoice { automatic, white, black, random, learned };
inline constexpr const char* kBackgroundChoiceWords[] = {"auto", "white", "black", "random", "learned"};

/// What becomes of a training one of whose checkpoints cannot be written.
enum class OnSaveError { stop, warn };
inline constexpr const char* kOnSaveErrorWords[] = {"stop", "warn"};

struct TrainRequest {
    std::string folder;  // of the photographs
    SceneOptions scene;
    std::string output;  // file of the field
    TrainMode mode = TrainMode::automatic;
    int64_t voxels = 0;  // along an edge of a cube with as many, 8 to 800; 0: by the mode
    BackgroundChoice background = BackgroundChoice::automatic;
    std::vector<std::string> settings;  // "fine.N_iters=5000", which have the last word
    bool deterministic = false;

    std::string checkpoints, resume;  // a new run folder, or one to go on with
    int64_t checkpoint_every = 0, render_every = 0;
    int render_views = 3;
    int64_t max_steps = 0;
    OnSaveError on_save_error = OnSaveError::stop;
    bool strict = false;

    bool has_run() const { return !checkpoints.empty() || !resume.empty(); }
};
/// But for folder, scene and output.
const Fields& train_request_fields();

/// What is quick enough for the device, where the mode is automatic.
TrainMode mode_for(TrainMode mode, Device device);
Background background_for(BackgroundChoice choice, const Scene& scene);

/// Changes one option by KEY=VALUE, as set_train_option() does.
void apply_setting(TrainOptions& options, const std::string& assignment);

/// The mode's options, then the voxels, then the settings. The background is the scene's matter. Throws
/// Error{bad_argument} for voxels out of range, and as apply_setting().
TrainOptions train_options(const TrainRequest& request, TrainMode mode, uint64_t seed);

/// How the training is kept from time to time; without a folder.
TrainRun run_of(const TrainRequest& request);

/// A run as its folder remembers it.
struct RecordedRun {
    TrainRequest request;
    TrainMode mode = TrainMode::automatic;
    std::string device;
    TrainOptions training;
};
/// config.toml of a run: [run] has what was asked for, [train], [coarse] and [fine] all numbers.
std::string run_config(const RecordedRun& run);

/// What config.toml says. `given` is what is asked for now: what may be given with a run that is gone on with wins.
/// Throws Error{bad_config} with the line.
RecordedRun recorded_run(const std::string& config, const TrainRequest& given);

}  // namespace stipple::radiance
