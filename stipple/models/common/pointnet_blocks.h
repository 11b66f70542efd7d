#pragma once
// Pieces that the PointNet builders share.

#include <initializer_list>

#include "stipple/models/pointnet.h"
#include "stipple/network/builder.h"

namespace stipple::models {

using network::Builder;
using network::Tensor;

/// What follows the products of a variant: batch norm with its eps, ReLU, its way to start.
network::LinearOptions pointnet_layer(PointNetVariant variant);

/// The same without the ReLU: the last layer before the max of the torch variant.
network::LinearOptions pointnet_last_layer(PointNetVariant variant);

/// T-net: [B, N, k] -> [B, k * k], the identity at first. Layers NAME.conv1 .., NAME.pool, NAME.fc1 .., NAME.matrix.
Tensor transform_net(Builder& build, const std::string& name, Tensor x, std::initializer_list<int64_t> point_channels,
                     std::initializer_list<int64_t> cloud_channels, const network::LinearOptions& layer);

/// "pointnet-classifier"
const char* name_of(PointNetModel model);

/// Throws Error{bad_argument} for options out of range.
void check_options(const PointNetOptions& options, PointNetModel model);

/// Options as a weights file keeps them.
std::map<std::string, std::string> config_of(const PointNetOptions& options, PointNetModel model);

/// The other way: Error{bad_config} as build_model().
PointNetOptions pointnet_options(const std::map<std::string, std::string>& config, PointNetModel model);

}  // namespace stipple::models
