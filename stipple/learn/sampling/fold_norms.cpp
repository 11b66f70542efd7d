#include "stipple/learn/sampling/fold_norms.h"

#include <algorithm>
#include <cmath>

namespace stipple::learn {
namespace {

using network::Kind;
using network::Layer;
using network::WeightTensor;

void fold_norm(Layer& layer, network::Weights& weights) {
    const auto tensor = [&](const char* name) -> WeightTensor& {
        return weights.tensors.at(layer.parameters + "." + name);
    };
    WeightTensor& weight = tensor("weight");
    const int64_t rows = weight.shape[0], columns = weight.shape[1];
    WeightTensor bias = layer.options.bias ? tensor("bias") : WeightTensor{{rows}, std::vector<float>(rows, 0.0f)};
    for (int64_t row = 0; row < rows; ++row) {
        const auto at = static_cast<size_t>(row);
        const double scale = tensor("norm.weight").values[at] /
                             std::sqrt(double{tensor("norm.running_var").values[at]} + layer.options.norm_eps);
        for (int64_t i = 0; i < columns; ++i) {
            float& value = weight.values[static_cast<size_t>(row * columns + i)];
            value = static_cast<float>(value * scale);
        }
        bias.values[at] =
            static_cast<float>((double{bias.values[at]} - tensor("norm.running_mean").values[at]) * scale +
                               tensor("norm.bias").values[at]);
    }
    for (const char* name : {"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"})
        weights.tensors.erase(layer.parameters + "." + name);
    weights.tensors[layer.parameters + ".bias"] = std::move(bias);
    layer.options.norm = false;
    layer.options.bias = true;
}

}  // namespace

void fold_norms(models::Model& model) {
    std::vector<Layer>& layers = model.network.layers;
    for (Layer& layer : layers) {
        if (layer.kind != Kind::linear || !layer.options.norm) continue;
        const auto users = std::count_if(layers.begin(), layers.end(), [&](const Layer& other) {
            return other.kind == Kind::linear && other.parameters == layer.parameters;
        });
        if (users == 1) fold_norm(layer, model.weights);
    }
}

}  // namespace stipple::learn
