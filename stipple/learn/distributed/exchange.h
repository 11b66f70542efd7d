#pragma once
// What the ranks of a training run tell each other in a step, and before the first.

#include <map>
#include <string>
#include <torch/types.h>
#include <vector>

#include "stipple/learn/distributed/process_group.h"
#include "stipple/learn/objective.h"

namespace stipple::learn {

/// The batch itself, which a group must be able to divide. Throws Error{bad_config} with one that it can, and where
/// ranks have other numbers of items to train on.
int64_t shared_batch(int64_t batch, int64_t items, ProcessGroup* group);

/// Rank 0's values of all tensors, in place.
void share_tensors(ProcessGroup& group, const std::map<std::string, torch::Tensor>& tensors);

/// Every gradient becomes the sum over the ranks: one collective for each type. Short numbers are summed in float32.
void sum_gradients(ProcessGroup& group, const std::vector<torch::Tensor>& parameters);

/// What all ranks together have seen in a step, on the device.
struct SharedStep {
    torch::Tensor loss;     // float64 [1]: the mean of theirs
    torch::Tensor sums;     // as StepOutput: the first, which is a mean, is their mean
    torch::Tensor signals;  // float64 [2]: how many were interrupted, how many told to end
};
/// signal: that this rank has caught, or 0.
SharedStep share_step(ProcessGroup& group, const StepOutput& own, int signal);

/// Throws Error{interrupted} or Error{terminated} when a rank was told to stop; the numbers of SharedStep::signals.
void check_signals(const double* signals);

/// What ranks found wrong (find_trouble), as one text: gradients, which are those of all, only if nobody found more.
std::string share_trouble(ProcessGroup& group, const std::string& found);

}  // namespace stipple::learn
