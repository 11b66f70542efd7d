#include "stipple/network/describe.h"

#include <fmt/format.h>

#include "stipple/network/kinds/kind.h"

namespace stipple::network {
namespace {

constexpr int64_t kPoints = 1024;  // of the cloud whose cost is told

void join(std::string& text, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += ", ";
    text += part;
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
    const LayerKind& kind = kind_of(layer);
    std::string text = kind.text ? kind.text(layer.options) : std::string();
    if (layer.options.inverse) join(text, "inverse");
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
