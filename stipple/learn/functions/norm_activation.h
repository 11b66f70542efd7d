#pragma once
// Batch norm over rows, with or without ReLU, as one function that keeps its input alone.

#include <torch/types.h>

namespace stipple::learn {

struct RowNorm {
    torch::Tensor gamma, beta;                // [c] float32
    torch::Tensor running_mean, running_var;  // [c] float32, updated with the statistics of the rows
    torch::Tensor offset;                     // [c], undefined: 0. The rows lack it: it counts for running_mean alone
    double eps = 1e-5, momentum = 0.1;
    bool has_relu = false;
};

/// Whether norm_activation takes such rows: on a GPU, of float32, float16 or bfloat16.
bool can_norm_activation(const torch::Tensor& rows);

/// rows [n, c], n > 1 -> act(gamma (rows - mean) / sqrt(var + eps) + beta) in the type of the rows, with mean and
/// variance of each column. A constant that is added to all rows of a column changes nothing, so that a layer's bias
/// need not be added before: it is the offset, and its gradient is 0. Gradients for rows, gamma and beta. NaN in a
/// column is NaN in all of it. By the kernels of ops/row_norm.h: one pass over the rows for the statistics and one for
/// the result, two backward.
torch::Tensor norm_activation(const torch::Tensor& rows, const RowNorm& norm);

}  // namespace stipple::learn
