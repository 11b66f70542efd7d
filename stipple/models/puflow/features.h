#pragma once
// Features of PU-Flow: densely connected edge convolutions on a fixed graph of neighbours.

#include <string>

#include "stipple/network/builder.h"

namespace stipple::models::puflow_parts {

constexpr int kBlocks = 6;

/// A densely connected edge convolution [B, N, c] -> [B, N, k, channels]: each layer sees the edge and all before it.
network::Tensor edge_unit(network::Builder& build, const std::string& name, network::Tensor x,
                          network::Tensor neighbours, int64_t channels, int64_t growth);

/// Features of one block, 32, 64 or 128 channels, which the next block takes, too.
network::Tensor block_features(network::Builder& build, int block, network::Tensor x, network::Tensor neighbours);

/// What the flow takes of a block's features, as many channels as they have.
network::Tensor block_condition(network::Builder& build, int block, network::Tensor features);

}  // namespace stipple::models::puflow_parts
