#pragma once
// The largest product of a cloud's rows with each row of a matrix, and its gradients, on torch tensors: the part of
// linear_norm_max that needs kernels. Products of a few clouds at a time are all that is ever in memory.

#include <torch/types.h>

#include "stipple/ops/clouds.h"

namespace stipple::learn {

struct LargestProducts {
    torch::Tensor values;  // [clouds, channels]: max over the cloud's rows r of rows[r] . weight[c]
    torch::Tensor
        winners;  // int32 [clouds, channels]: its row, counted from the first of the cloud; of equal the first
};
/// rows [n, k], weight [channels, k]: contiguous; of short numbers the products are float32. A NaN among the products
/// is the largest.
LargestProducts largest_products(const torch::Tensor& rows, const ops::Batch& batch, const torch::Tensor& weight);

/// of_winners is contiguous here and below. [channels, k]: sum over the clouds of of_winners[cloud, c] times the
/// winning row.
torch::Tensor winners_weight(const torch::Tensor& rows, const ops::Batch& batch, const torch::Tensor& winners,
                             const torch::Tensor& of_winners);

/// Adds of_winners[cloud, c] weight[c] to the winning rows of dL_drows [n, k].
void add_winners_rows(const ops::Batch& batch, const torch::Tensor& weight, const torch::Tensor& winners,
                      const torch::Tensor& of_winners, torch::Tensor& dL_drows);

/// Whether add_winners_to_scaled_rows takes this weight.
bool can_add_to_short_rows(const torch::Tensor& weight);
/// dL_drows = factor dL_drows + constant, and then as above, in one pass. On a GPU; dL_drows is of float16 or bfloat16,
/// factor [1] and constant [k] of float32.
void add_winners_to_scaled_rows(const ops::Batch& batch, const torch::Tensor& weight, const torch::Tensor& winners,
                                const torch::Tensor& of_winners, const torch::Tensor& factor,
                                const torch::Tensor& constant, torch::Tensor& dL_drows);

}  // namespace stipple::learn
