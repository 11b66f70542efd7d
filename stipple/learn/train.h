#pragma once
// The training loop: from an objective and a recipe to weights, through everything that may happen to a process.
//
// RUN/config.toml                the resolved recipe, with which `resume` needs nothing else
// RUN/metrics.jsonl              a line for every log_every steps, every epoch and every evaluation
// RUN/events/                    the same for TensorBoard
// RUN/curves.png                 loss and scores over the epochs, drawn after each
// RUN/ckpt/step-NNNNNNNN/        checkpoints (core/checkpoint.h)
// RUN/weights.safetensors        at the end: the last epoch's weights, or their moving average
// RUN/best.safetensors           those of the best evaluation, where there is a validation
//
// A run is a function of its recipe and data: batches are a function of (seed, epoch, item), dropout of (seed, step,
// layer). So a run that is killed at any moment and resumed ends in the same bits as one that is not: on the CPU with
// the same number of threads, on a GPU in deterministic mode.
//
// Failpoints (core/failpoint.h): train.step before each step, train.epoch after each epoch, and those of checkpoints.

#include <functional>
#include <optional>
#include <string>

#include "stipple/core/profile.h"
#include "stipple/core/progress.h"
#include "stipple/core/run_folder.h"
#include "stipple/learn/objective.h"
#include "stipple/learn/recipe.h"

namespace stipple::learn {

struct TrainOptions {
    torch::Device device = torch::kCPU;
    ProgressMode progress = ProgressMode::automatic;
    bool is_resumed = false;
    bool refuses_damaged = false;       // --strict: a damaged checkpoint is an error, not skipped
    bool survives_save_errors = false;  // --on-save-error warn
    int64_t max_steps = 0;              // ends after so many steps of the run, saved, to be resumed; 0: at its end
    std::optional<network::Weights> initial;  // instead of initial_weights(network, seed)

    /// Ranks that train together: each has its share of every batch, and they end in the weights of one process with
    /// the same batches, up to rounding. Rank 0 alone evaluates, logs, saves and resumes, and the others learn its
    /// state; they have RunFolder::elsewhere().
    ProcessGroup* group = nullptr;

    /// Where so many steps go, after some that warm up; then the run ends as by max_steps. With an epoch that ends
    /// among them: the evaluation and the checkpoint too. Threads of the loader are not part of it, the wait for them
    /// is.
    Profile* profile = nullptr;
    int64_t profile_steps = 0;
};

struct TrainReport {
    int64_t epochs = 0, steps = 0, skipped = 0;  // skipped: steps whose loss or gradient was not finite
    double seconds = 0;                          // of this process
    Scores scores;                               // of the last epoch and its evaluation
    int64_t profiled = 0;                        // steps
    bool is_complete = false;                    // else max_steps or a profile ended it
    bool stopped_early = false;
    std::string weights;  // path; empty unless complete
    std::vector<std::string> warnings;
};
/// But for its scores, whose names the task tells.
const Fields& train_report_fields();

/// Trains to the end of the recipe. SIGINT, SIGTERM and SIGUSR1: the step is finished, a checkpoint saved, and
/// Error{interrupted} or Error{terminated} thrown.
///
/// Loss or gradients that are not finite: the step is skipped, counted and logged with the first layer whose output is
/// not finite and the items; after 10 in a row, or when more than 1 % of the steps (and 10) were skipped,
/// Error{not_finite}. What a checkpoint holds is always finite.
///
/// A signal to one rank of a group ends all of them after the same step. What is not finite for one rank is skipped by
/// all. Throws Error{lost_rank} when another rank is gone or has failed, and Error{bad_config} for a batch that the
/// ranks cannot divide among them, or when they have different data.
///
/// Throws Error{out_of_memory} with a batch to try, Error{cannot_write} when a checkpoint could not be saved in two
/// attempts (the ones before it are intact), Error{bad_file} for a checkpoint that does not belong to the recipe.
TrainReport train(const Recipe& recipe, Objective& objective, RunFolder& folder, const TrainOptions& options);

}  // namespace stipple::learn
