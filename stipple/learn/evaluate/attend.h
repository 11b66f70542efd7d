#pragma once
// The layer attend on torch tensors.

#include "stipple/learn/evaluate/layer.h"

namespace stipple::learn {

/// queries [rows, d], keys [other rows, d], values [other rows, c] -> [rows, c]. O(N M) memory of a cloud.
torch::Tensor run_attend(const network::Layer& layer, const std::vector<torch::Tensor>& inputs,
                         const LayerContext& context);

}  // namespace stipple::learn
