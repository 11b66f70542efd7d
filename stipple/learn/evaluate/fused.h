#pragma once
// Layers that are run as one function: a linear layer, with batch norm or without, and the maximum over points behind
// it.

#include "stipple/learn/evaluate/layer.h"

namespace stipple::learn {

/// By layer: for a max_points the position of the linear layer that linear_norm_max computes with it, else -1. That is
/// a layer with no activation or ReLU, at least twice as wide as its input, whose output nobody else reads.
std::vector<int64_t> fused_layers(const network::Network& network);

/// The maximum over `linear` of `input`; the context is that of the linear layer.
torch::Tensor run_linear_max(const network::Layer& linear, const torch::Tensor& input, const LayerContext& context);

}  // namespace stipple::learn
