#include "stipple/learn/loop/set_up.h"

#include <torch/torch.h>

namespace stipple::learn {

void set_arithmetic(const Recipe& recipe) {
    at::globalContext().setDeterministicAlgorithms(recipe.run.deterministic, /*warn_only=*/true);
    at::globalContext().setBenchmarkCuDNN(false);
    const bool is_tf32 = recipe.run.precision != Precision::fp32;  // of what is float32 beside shorter products too
    at::globalContext().setAllowTF32CuBLAS(is_tf32);
    at::globalContext().setAllowTF32CuDNN(is_tf32);
}

std::optional<torch::Dtype> type_of_products(Precision precision) {
    if (precision == Precision::bf16) return torch::kBFloat16;
    if (has_loss_scale(precision)) return torch::kHalf;
    return {};
}

network::Weights first_weights(const Recipe& recipe, const Objective& objective,
                               const std::optional<network::Weights>& initial) {
    network::Weights weights = initial ? *initial : network::initial_weights(objective.network(), recipe.run.seed);
    for (const auto& [name, value] : objective.metadata()) weights.metadata[name] = value;
    return weights;
}

Module module_for(const Recipe& recipe, const Objective& objective, const network::Weights& weights,
                  torch::Device device) {
    if (has_loss_scale(recipe.run.precision) && !device.is_cuda())
        throw Error(ErrorCode::bad_config, "float16 is for a GPU", "use run.precision=fp32 or bf16");
    Module module(objective.network(), weights, device);
    const bool is_short =
        recipe.run.precision == Precision::fp16_weights || recipe.run.precision == Precision::fp16_pure;
    if (is_short) module.store_weights_as(torch::kHalf);
    return module;
}

std::map<std::string, torch::Tensor> averaged(const Module& module, const Optimizer& optimizer) {
    std::map<std::string, torch::Tensor> tensors = optimizer.masters();
    tensors.insert(module.parameters().begin(), module.parameters().end());
    return tensors;
}

}  // namespace stipple::learn
