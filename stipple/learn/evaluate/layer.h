#pragma once
// One layer of a Network on torch tensors.

#include <functional>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "stipple/learn/module.h"
#include "stipple/learn/short_numbers.h"

namespace stipple::learn {

/// What a layer sees beside its inputs.
struct LayerContext {
    const network::Network& network;
    const std::vector<ops::Batch>& batches;  // by point set
    const std::function<torch::Tensor&(const char* name)>&
        parameter;  // of the layer: "weight"; of a constant its "values"
    const RunOptions& options;
    int64_t position = 0;  // of the layer in the network
};

/// The type that a linear layer with this weight multiplies in.
inline torch::Dtype type_of_products(const torch::Tensor& weight, const RunOptions& options) {
    if (options.products) return *options.products;
    return is_short(weight) ? torch::kFloat32 : weight.scalar_type();
}

/// inputs: as the layer's, in order. Kind::input is not a layer to run.
torch::Tensor run_layer(const network::Layer& layer, const std::vector<torch::Tensor>& inputs,
                        const LayerContext& context);

/// Whether a CUDA graph can hold a step with this network on dense batches: none of its layers brings numbers of the
/// host to the GPU or waits for it, as inverses of large matrices do.
bool can_be_recorded(const network::Network& network);

}  // namespace stipple::learn
