#include "stipple/learn/evaluate/attend.h"

namespace stipple::learn {
namespace {

using network::Normalise;
using torch::Tensor;

Tensor of_unit_length(const Tensor& x) {
    return x * torch::rsqrt((x * x).sum(-1, true) + double{network::kUnitGuard});
}

/// Clouds of one size: queries [b, n, d], keys [b, m, d], values [b, m, c].
Tensor attend(const network::LayerOptions& options, Tensor queries, Tensor keys, const Tensor& values) {
    if (options.unit) {
        queries = of_unit_length(queries);
        keys = of_unit_length(keys);
    }
    Tensor weights = torch::bmm(queries, keys.transpose(1, 2)) * double{options.factor};
    Tensor self;
    if (options.skips_self) self = torch::eye(weights.size(1), weights.options().requires_grad(false));
    if (options.normalise == Normalise::none) {
        weights = weights / static_cast<double>(weights.size(2));
    } else {
        if (self.defined()) weights = weights - 1e30 * self;
        weights = options.normalise == Normalise::row ? torch::softmax(weights, 2)
                                                      : torch::softmax(weights.flatten(1), 1).reshape(weights.sizes());
    }
    if (self.defined()) weights = weights * (1 - self);
    return torch::bmm(weights, values).reshape({-1, values.size(2)});
}

}  // namespace

torch::Tensor run_attend(const network::Layer& layer, const std::vector<torch::Tensor>& inputs,
                         const LayerContext& context) {
    const auto batch_of = [&](size_t i) -> const ops::Batch& {
        return context.batches[static_cast<size_t>(context.network[layer.inputs[i]].type.set)];
    };
    const ops::Batch &of_queries = batch_of(0), &of_keys = batch_of(1);
    std::vector<Tensor> answers;
    for (int64_t first = 0, last = 0; first < of_queries.clouds(); first = last) {
        const int64_t n = of_queries.size(first), m = of_keys.size(first);
        while (last < of_queries.clouds() && of_queries.size(last) == n && of_keys.size(last) == m) ++last;
        const auto clouds = [&](size_t i, const ops::Batch& batch, int64_t size) {
            return inputs[i]
                .narrow(0, batch.begin(first), (last - first) * size)
                .reshape({last - first, size, inputs[i].size(1)});
        };
        answers.push_back(
            attend(layer.options, clouds(0, of_queries, n), clouds(1, of_keys, m), clouds(2, of_keys, m)));
    }
    return answers.size() == 1 ? answers[0] : torch::cat(answers);
}

}  // namespace stipple::learn
