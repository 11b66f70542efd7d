#include "stipple/learn/flows/lipschitz.h"

#include <algorithm>
#include <cmath>
#include <torch/torch.h>

namespace stipple::learn {

using torch::Tensor;

Tensor spectral_norm_bound(const Tensor& matrix) {
    const torch::NoGradGuard no_gradients;
    constexpr int kSquarings = 9;  // rank^(1 / 1024) is 1.004 for 64
    const Tensor w = matrix.to(torch::kFloat64);
    Tensor power = w.size(0) < w.size(1) ? w.matmul(w.t()) : w.t().matmul(w);
    Tensor log_scale = torch::zeros({}, w.options().requires_grad(false));
    for (int i = 0; i < kSquarings; ++i) {
        const Tensor size = torch::clamp_min(power.norm(), 1e-300);
        log_scale = 2 * (log_scale + torch::log(size));
        power = power / size;
        power = power.matmul(power);
    }
    const Tensor log_norm = log_scale + torch::log(torch::clamp_min(power.norm(), 1e-300));
    return torch::exp(log_norm / std::exp2(kSquarings + 1));
}

namespace {

bool is_residual(const network::Layer& layer) {
    return layer.kind == network::Kind::flow_step && layer.options.steps == 0;
}

}  // namespace

bool has_residual_steps(const network::Network& network) {
    return std::any_of(network.layers.begin(), network.layers.end(), is_residual);
}

void bound_residual_steps(const network::Network& network, const std::map<std::string, Tensor>& tensors) {
    const torch::NoGradGuard no_gradients;
    for (const network::Layer& layer : network.layers) {
        if (!is_residual(layer) || layer.parameters != layer.name) continue;
        const double slope = layer.options.activation.kind == network::ActivationKind::swish ? 1.1 : 1;
        const double bound = std::cbrt(kLipschitzBound / (slope * slope));
        for (int i = 0; i < 3; ++i) {
            const auto found = tensors.find(layer.parameters + "." + std::to_string(i) + ".weight");
            if (found == tensors.end()) continue;
            const Tensor factor = torch::clamp_max(bound / spectral_norm_bound(found->second), 1);
            Tensor weight = found->second;
            weight.mul_(factor.to(weight.scalar_type()));
        }
    }
}

}  // namespace stipple::learn
