#pragma once
// The layer flow_step on torch tensors.

#include "stipple/learn/evaluate/layer.h"

namespace stipple::learn {

/// x, condition -> [rows, c], or [rows, c + 1] with the log-determinant.
torch::Tensor run_flow_step(const network::Layer& layer, const std::vector<torch::Tensor>& inputs,
                            const LayerContext& context);

}  // namespace stipple::learn
