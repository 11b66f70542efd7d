#include "stipple/learn/sampling/frozen_task.h"

#include <algorithm>
#include <torch/torch.h>

#include "stipple/learn/sampling/fold_norms.h"

namespace stipple::learn {

void FrozenTask::prepare(torch::Device device) {
    fold_norms(model_);
    module_ = std::make_unique<Module>(model_.network, model_.weights, device);
    for (const torch::Tensor& parameter : module_->trained()) torch::Tensor(parameter).requires_grad_(false);
}

int64_t FrozenTask::logits_at(network::Level level) const {
    for (const network::Output& output : network().outputs)
        if (output.name == "logits" && network()[output.tensor].type.level == level)
            return network()[output.tensor].type.channels;
    return 0;
}

void FrozenTask::require_points(int64_t size) const {
    int64_t most = 0;
    for (const network::Layer& layer : network().layers)
        if (layer.kind == network::Kind::knn) most = std::max(most, layer.options.width);
    if (size < most)
        misfit(fmt::format("it looks at the {} nearest points of each, and samples have {}", most, size),
               fmt::format("-n {} or more; of progressive ones sampling.smallest as well", most));
}

void FrozenTask::misfit(const std::string& message, const std::string& hint) const {
    throw Error(ErrorCode::bad_config, fmt::format("sampling.network {}: {}", path_, message), hint);
}

}  // namespace stipple::learn
