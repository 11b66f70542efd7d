#pragma once
// What a training run must remember to go on as if nothing had happened: tensors in one safetensors file, numbers in
// the checkpoint's manifest. Everything else is a function of these and the recipe.

#include <map>
#include <string>
#include <torch/types.h>
#include <vector>

#include "stipple/core/byte_sink.h"
#include "stipple/learn/precision.h"
#include "stipple/learn/schedule.h"

namespace stipple::learn {

/// Numbers of a run; the state between two steps.
struct Counters {
    int64_t step = 0;              // steps made or skipped
    int64_t epoch = 0, batch = 0;  // that come next
    int64_t optimizer_steps = 0, average_updates = 0;
    int64_t skipped = 0, skipped_in_a_row = 0;
    int64_t evaluations_without_better = 0;
    double best_score = 0;
    int64_t best_epoch = -1;  // none yet
    double last_score = 0;    // of the last evaluation
    PlateauState plateau;
    std::vector<double> sums;  // of the epoch so far, and how many steps they are of
    int64_t summed_steps = 0;
    LossScale loss_scale;
    bool is_finished = false;  // the last epoch is done, or patience has ended the run
};

std::string to_json(const Counters& counters);
/// Throws Error{bad_file}.
Counters counters_from_json(std::string_view text);

/// As safetensors, float32 and float64 bit by bit.
void write_tensors(const std::map<std::string, torch::Tensor>& tensors, ByteSink& sink);
std::map<std::string, torch::Tensor> load_tensors(const std::string& path);

/// Copies every tensor of `from` that is named prefix + name into `to`. Throws Error{bad_file} for one that is missing
/// or has another shape.
void copy_tensors(const std::map<std::string, torch::Tensor>& from, const std::string& prefix,
                  const std::map<std::string, torch::Tensor>& to);

}  // namespace stipple::learn
