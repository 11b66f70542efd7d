#pragma once
// Residual steps kept invertible while they train.

#include <map>
#include <string>
#include <torch/types.h>

#include "stipple/network/network.h"

namespace stipple::learn {

/// Of g of every residual flow_step, by x.
constexpr double kLipschitzBound = 0.9;

/// The largest singular value of a matrix from above, at most 1 % too large: squares of W^T W, whose norms tend to it
/// [Delattre et al. 2023]. A number on the matrix's device, without gradient; nothing is kept between calls.
torch::Tensor spectral_norm_bound(const torch::Tensor& matrix);

bool has_residual_steps(const network::Network& network);

/// Scales down, in place, weights of residual flow_steps that are too large: each to a third of the bound in the
/// logarithm, less the largest slopes of the activations; gates, which are below 1, cannot undo it. What is within
/// stays as it is, and so does an average of weights that are. Nothing waits for the device. tensors: by parameter
/// name; names that are missing are passed over.
///
/// Called after every step of an optimiser, so that what is saved is within and engines need not look.
void bound_residual_steps(const network::Network& network, const std::map<std::string, torch::Tensor>& tensors);

}  // namespace stipple::learn
