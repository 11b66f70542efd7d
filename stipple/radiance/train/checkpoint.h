#pragma once
// A TrainState on disk: arrays in state.safetensors, numbers in the manifest of the checkpoint (core/checkpoint.h).

#include <optional>

#include "stipple/core/checkpoint.h"
#include "stipple/io/safetensors.h"
#include "stipple/radiance/train.h"
#include "stipple/radiance/train/state.h"

namespace stipple::radiance {

inline constexpr int kKeptCheckpoints = 2;  // one may be damaged

/// What a checkpoint belongs to: to go on with anything else would be another training.
struct TrainOrigin {
    std::string options;  // the text of TrainOptions (train_keys.h)
    std::string device;   // "cpu", "cuda"
    std::string model;    // of the device: another one does not give the same bits
    int64_t photographs = 0, pixels = 0;
    std::string fingerprint;  // of the photographs' pixels and cameras, of box and depths: 16 hexadecimal digits
};

TrainOrigin origin_of(const Scene& scene, const TrainOptions& options, Device device);

/// Throws Error{bad_config} that names the option, the scene or the device that is not the checkpoint's.
void require_same(const TrainOrigin& stored, const TrainOrigin& now, const std::string& checkpoint);

/// All that a checkpoint holds.
struct SavedTraining {
    TrainState state;
    TrainOrigin origin;
    double psnr = 0;  // of the last report
    std::optional<double> test_psnr;
};

/// Saves as step `step` of the run, counted over both stages. The state is used up, so that its arrays are in memory
/// once. Throws Error{not_finite}, and what save_checkpoint throws; `retry` is told of a first Error{cannot_write}.
void save_training(const std::string& run, int64_t step, SavedTraining training,
                   const std::function<void(const Error&)>& retry);

/// Reads a checkpoint that find_checkpoint gave. `now`: what it must belong to, checked before arrays are read. Throws
/// Error{bad_file} with the file and the array that is wrong.
SavedTraining load_training(const Checkpoint& checkpoint, const TrainOrigin& now);

}  // namespace stipple::radiance
