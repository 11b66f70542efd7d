#pragma once
// Which of a point's neighbours its children are made of.

#include "stipple/network/builder.h"

namespace stipple::models::puflow_parts {

constexpr int64_t kMostChildren = 32;

/// Weights of each point's neighbours for each of its children, before the softmax [B, N, k, ratio].
network::Tensor interpolation_logits(network::Builder& build, network::Tensor points, network::Tensor neighbours,
                                     int64_t ratio);

}  // namespace stipple::models::puflow_parts
