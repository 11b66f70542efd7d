#pragma once
// What a training leaves in its run folder: checkpoints, metrics.jsonl, renders/.

#include "stipple/radiance/evaluate.h"
#include "stipple/radiance/train/checkpoint.h"

namespace stipple::radiance {

class TrainLog {
public:
    /// `run` has a folder. What is skipped on the way is told in `warnings`.
    TrainLog(const Scene& scene, const TrainOptions& options, Device device, const TrainRun& run,
             std::vector<std::string>& warnings);

    /// What the newest sound checkpoint of a resumed run holds; nothing: it begins anew. Lines of metrics.jsonl behind
    /// it go.
    std::optional<SavedTraining> resume();

    /// `step` counts both stages. After the first one the disk must have room for those to come. Throws
    /// Error{cannot_write} after a second attempt, unless the run survives that: then is_saved() tells.
    void save(int64_t step, TrainState state, double psnr);
    bool is_saved(int64_t step) const { return step == saved_step_; }

    void add_step(const TrainStep& step);
    /// Pictures of test views, and a line that tells their PSNR.
    void render(int64_t step, const Field& field);

    std::optional<double> test_psnr() const { return test_psnr_; }
    double checkpoint_seconds() const { return checkpoint_seconds_; }
    double test_seconds() const { return test_seconds_; }

private:
    void render_views(int64_t step, const Field& field);

    const Scene& scene_;
    Device device_;
    const TrainRun& run_;
    std::vector<std::string>& warnings_;
    TrainOrigin origin_;
    std::vector<size_t> views_;
    std::optional<double> test_psnr_;
    int64_t saved_step_ = -1;
    double checkpoint_seconds_ = 0, test_seconds_ = 0;
};

}  // namespace stipple::radiance
