#include "stipple/network/describe.h"

#include <fmt/format.h>

namespace stipple::network {
namespace {

constexpr int64_t kPoints = 1024;  // of the cloud whose cost is told

void join(std::string& text, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += ", ";
    text += part;
}

std::string activation_text(const Activation& activation) {
    switch (activation.kind) {
        case ActivationKind::none: break;
        case ActivationKind::relu: return "relu";
        case ActivationKind::leaky_relu: return fmt::format("leaky_relu {}", activation.slope);
    }
    return {};
}

std::string linear_text(const LayerOptions& options) {
    const LayerOptions usual;
    std::string text = fmt::format("{}", options.channels);
    if (!options.bias) join(text, "no bias");
    if (options.norm) join(text, "norm");
    if (options.norm && options.norm_eps != usual.norm_eps) text += fmt::format(" eps {}", options.norm_eps);
    if (options.norm && options.norm_momentum != usual.norm_momentum)
        text += fmt::format(" momentum {}", options.norm_momentum);
    join(text, activation_text(options.activation));
    if (options.weights != usual.weights) join(text, fmt::format("starts {}", name_of(options.weights)));
    return text;
}

}  // namespace

std::string_view name_of(Initialiser initialiser) {
    switch (initialiser) {
        case Initialiser::zeros: return "zeros";
        case Initialiser::ones: return "ones";
        case Initialiser::fan_in_uniform: return "fan_in_uniform";
        case Initialiser::xavier_normal: return "xavier_normal";
        case Initialiser::random_orthogonal: return "random_orthogonal";
    }
    return "unknown";
}

std::string options_text(const Layer& layer) {
    const LayerOptions& options = layer.options;
    std::string text;
    switch (layer.kind) {
        case Kind::linear: text = linear_text(options); break;
        case Kind::activation: text = activation_text(options.activation); break;
        case Kind::dropout: text = fmt::format("{}", options.rate); break;
        case Kind::slice:
            text = options.end - options.begin == 1 ? fmt::format("channel {}", options.begin)
                                                    : fmt::format("channels {} to {}", options.begin, options.end - 1);
            break;
        case Kind::repeat: text = options.width == 1 ? "" : fmt::format("x {}", options.width); break;
        case Kind::knn: text = fmt::format("k {}", options.width); break;
        case Kind::scale: text = fmt::format("x {}", options.factor); break;
        case Kind::couple: text = fmt::format("from channel {}", options.begin); break;
        default: break;
    }
    if (options.inverse) join(text, "inverse");
    if (layer.parameters != layer.name) join(text, "weights of " + layer.parameters);
    return text;
}

std::string brief_options_text(const Layer& layer) {
    Layer plain = layer;
    plain.parameters = plain.name;
    plain.options.weights = LayerOptions().weights;
    plain.options.norm_momentum = LayerOptions().norm_momentum;
    return options_text(plain);
}

std::string grouped(int64_t number) {
    std::string text = fmt::format("{}", number);
    const size_t start = number < 0 ? 1 : 0;
    for (size_t at = text.size(); at > start + 3;) text.insert(at -= 3, ",");
    return text;
}

Totals count(const std::vector<Parameter>& parameters) {
    Totals totals;
    for (const Parameter& parameter : parameters) {
        int64_t numbers = 1;
        for (int64_t extent : parameter.shape) numbers *= extent;
        (parameter.is_trained ? totals.trained : totals.statistics) += numbers;
    }
    return totals;
}

std::string totals_text(const Network& network) {
    return fmt::format("{} layers, {} parameters, {:.3f} MMAC for {} points", network.layers.size(),
                       grouped(count(parameters_of(network)).trained),
                       static_cast<double>(multiply_adds(network, kPoints)) / 1e6, kPoints);
}

}  // namespace stipple::network
