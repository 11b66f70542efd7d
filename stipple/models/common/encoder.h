#pragma once
// The encoder that samplers, PCRNet and the autoencoder share: layers of the points, then the max over them.

#include <initializer_list>
#include <string>

#include "stipple/network/builder.h"

namespace stipple::models {

/// What follows the products, and how they start: as the programs that a network was published in.
enum class Norms {
    none,   // ReLU alone
    torch,  // batch norm with eps 1e-5, ReLU; +-1/sqrt(inputs) at first
    tf,     // batch norm with eps 1e-3, ReLU; Xavier at first
};
network::LinearOptions encoder_layer(Norms norms);

/// [B, N, c] -> [B, the last of `channels`]. Layers PREFIXconv1 .., PREFIXpool. With `parameters` the layers use those
/// of the encoder with that prefix.
network::Tensor point_encoder(network::Builder& build, const std::string& prefix, network::Tensor points,
                              std::initializer_list<int64_t> channels, const network::LinearOptions& layer,
                              const std::string* parameters = nullptr);

}  // namespace stipple::models
