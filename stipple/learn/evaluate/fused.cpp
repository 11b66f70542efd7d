#include "stipple/learn/evaluate/fused.h"

#include "stipple/learn/functions/linear_norm_max.h"

namespace stipple::learn {

using network::ActivationKind;
using network::Kind;
using network::Layer;

std::vector<int64_t> fused_layers(const network::Network& network) {
    std::vector<int64_t> readers(network.layers.size());
    for (const Layer& layer : network.layers)
        for (const network::Tensor input : layer.inputs) ++readers[static_cast<size_t>(input)];
    for (const network::Output& output : network.outputs) ++readers[static_cast<size_t>(output.tensor)];
    std::vector<int64_t> fused(network.layers.size(), -1);
    for (size_t i = 0; i < network.layers.size(); ++i) {
        if (network.layers[i].kind != Kind::max_points) continue;
        const auto at = static_cast<size_t>(network.layers[i].inputs[0]);
        const Layer& linear = network.layers[at];
        if (linear.kind != Kind::linear || readers[at] != 1) continue;
        const Layer& before = network.layers[static_cast<size_t>(linear.inputs[0])];
        const ActivationKind activation = linear.options.activation.kind;
        if (activation != ActivationKind::none && activation != ActivationKind::relu) continue;
        if (linear.type.channels >= 2 * before.type.channels) fused[i] = static_cast<int64_t>(at);
    }
    return fused;
}

torch::Tensor run_linear_max(const Layer& linear, const torch::Tensor& input, const LayerContext& context) {
    const network::LayerOptions& options = linear.options;
    const RunOptions& how = context.options;
    STIPPLE_REQUIRE(!options.norm || !how.is_training || how.group || input.size(0) > 1,
                    "{}: batch norm cannot learn from one row", linear.name);
    const ops::Batch& points = context.batches[static_cast<size_t>(linear.type.set)];
    std::vector<int64_t> offsets = {0};
    for (int64_t cloud = 0; linear.type.width > 1 && cloud < points.clouds(); ++cloud)
        offsets.push_back(points.end(cloud) * linear.type.width);
    const torch::Dtype type = type_of_products(context.parameter("weight"), how);
    const Clouds rows = {input.to(type), linear.type.width > 1 ? ops::Batch::ragged(std::move(offsets)) : points};
    const torch::Tensor weight = context.parameter("weight").to(type);
    const torch::Tensor bias = options.bias ? at_least_float(context.parameter("bias")) : torch::Tensor();
    const bool has_relu = options.activation.kind == ActivationKind::relu;
    if (!options.norm) {  // a norm that changes nothing, whose shift is the bias
        const torch::Tensor one = torch::ones({linear.type.channels},
                                              at_least_float(weight).options().requires_grad(false)),
                            zero = torch::zeros_like(one);
        return linear_norm_max(rows, {.weight = weight,
                                      .bias = {},
                                      .gamma = one,
                                      .beta = bias.defined() ? bias : zero,
                                      .running_mean = zero,
                                      .running_var = one,
                                      .eps = 0,
                                      .has_relu = has_relu});
    }
    return linear_norm_max(rows,
                           {.weight = weight,
                            .bias = bias,
                            .gamma = context.parameter("norm.weight"),
                            .beta = context.parameter("norm.bias"),
                            .running_mean = context.parameter("norm.running_mean"),
                            .running_var = context.parameter("norm.running_var"),
                            .eps = options.norm_eps,
                            .momentum = how.norm_momentum >= 0 ? how.norm_momentum : double{options.norm_momentum},
                            .uses_batch_statistics = how.is_training,
                            .has_relu = has_relu,
                            .group = how.group});
}

}  // namespace stipple::learn
