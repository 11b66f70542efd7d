#pragma once
// Batch norm over the rows of all ranks: the numbers of one process with all of the batch, up to rounding.

#include <torch/types.h>

#include "stipple/learn/distributed/process_group.h"

namespace stipple::learn {

struct SyncNorm {
    torch::Tensor gamma, beta;                // [channels]
    torch::Tensor running_mean, running_var;  // [channels], updated
    double eps = 1e-5, momentum = 0.1;
};

/// rows [n, channels] of this rank, of any floating type -> the same type. Statistics are of all ranks' rows, at least
/// two; each rank may have another number of them. Gradients for rows, gamma and beta; those of gamma and beta are this
/// rank's part, to be summed over the ranks as all gradients of parameters are. A collective forward, another one
/// backward. Sums that ranks exchange are float64.
torch::Tensor sync_batch_norm(const torch::Tensor& rows, const SyncNorm& norm, ProcessGroup& group);

/// Moments of the rows of all ranks, from the mean [k] and covariance [k, k] (divided by their number) of this rank's.
/// In the type of the arguments; n is [1].
struct RowMoments {
    torch::Tensor n, mean, covariance;
};
RowMoments moments_of_ranks(ProcessGroup& group, const torch::Tensor& own_mean, const torch::Tensor& own_covariance,
                            int64_t rows);

}  // namespace stipple::learn
