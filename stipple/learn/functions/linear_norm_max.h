#pragma once
// A linear layer with batch norm, and the maximum over the points of a cloud: PointNet's widest layers, as one
// function.
//
// y = max over the rows h of a cloud of act(gamma (W h + b - mean) / sqrt(var + eps) + beta), act none or ReLU. The
// [rows, channels] products are never kept: memory is that of the input and of the result.
//
//   - Mean and variance of the products come from mean and covariance of the rows: W m + b and w' C w.
//   - A positive factor and ReLU do not change which row is the largest, so that the products alone decide; where
//     gamma is negative, the smallest.
//   - Backward, a product has the gradient s of its winner, and through the statistics a linear function of itself:
//     alpha + beta (w . (h - m)), with alpha and beta for each channel. So dW = winners' part + R (alpha m' +
//     diag(beta) W C) and dh = winners' part + W' alpha + (W' diag(beta) W)(h - m): products of [k, k], not of
//     [k, channels].
//   - With a group of ranks, mean, covariance and R are of the rows of all, and so are the sums in alpha and beta. The
//     gradients of weight, gamma and beta are then this rank's part, to be summed over the ranks: of the part of dW
//     that comes through the statistics, R (...), each has its share of R.

#include "stipple/learn/distributed/process_group.h"
#include "stipple/learn/functions.h"

namespace stipple::learn {

struct LinearNorm {
    torch::Tensor weight, bias;               // [channels, k], [channels]; no bias: undefined
    torch::Tensor gamma, beta;                // [channels]
    torch::Tensor running_mean, running_var;  // [channels]
    double eps = 1e-5, momentum = 0.1;
    bool uses_batch_statistics = false;  // and updates the running ones; else those count, as constants
    bool has_relu = false;
    ProcessGroup* group = nullptr;  // batch statistics are those of the rows of all its ranks
};

/// rows [n, k] -> [clouds, channels]; every cloud has a row, with batch statistics there are two in all. rows and
/// weight are float64, float32, float16 or bfloat16, all else and the result float32 or, with the first, float64. NaN
/// in a cloud is NaN in its result, with batch statistics in all. Gradients for rows, weight, gamma and beta, each
/// computed only where it is wanted; that of the bias is 0 with batch statistics. Ties: the first row has the gradient.
/// The numbers are those of the layers one by one up to rounding.
torch::Tensor linear_norm_max(const Clouds& rows, const LinearNorm& layer);

}  // namespace stipple::learn
