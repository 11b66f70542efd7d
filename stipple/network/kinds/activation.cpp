// Activations, and dropout, which is one while training.

#include "stipple/network/kinds/activation.h"

#include <array>
#include <limits>
#include <numbers>

#include "stipple/network/onnx/export.h"

namespace stipple::network {

void check_activation(const Rules& rules, const Activation& activation) {
    const SlopeRange range = slope_range(activation.kind);
    if (range.above < range.below && !range.contains(activation.slope))
        rules.fail("slope of {} is {}, must be between {} and {}", name_of(activation.kind), activation.slope,
                   range.above, range.below);
}

namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 10> kActivationNames = {"none", "relu", "leaky_relu", "tanh",     "sigmoid",
                                                               "elu",  "gelu", "swish",      "softplus", "log"};

}  // namespace

std::string_view name_of(ActivationKind kind) {
    const auto index = static_cast<size_t>(kind);
    return index < kActivationNames.size() ? kActivationNames[index] : "unknown";
}

std::optional<ActivationKind> activation_named(std::string_view name) {
    for (size_t i = 0; i < kActivationNames.size(); ++i)
        if (kActivationNames[i] == name) return static_cast<ActivationKind>(i);
    return std::nullopt;
}

SlopeRange slope_range(ActivationKind kind) {
    if (kind == ActivationKind::leaky_relu) return {0, 1};
    if (kind == ActivationKind::elu || kind == ActivationKind::log) return {0, std::numeric_limits<float>::infinity()};
    return {};
}

std::string activation_text(const Activation& activation) {
    if (activation.kind == ActivationKind::none) return {};
    const std::string name(name_of(activation.kind));
    const SlopeRange range = slope_range(activation.kind);
    return range.above < range.below ? fmt::format("{} {}", name, activation.slope) : name;
}

namespace {

// Opset 17 has no Gelu: x / 2 (1 + erf(x / sqrt 2)).
std::string gelu_onnx(OnnxExport& out, const Layer& layer, const std::string& x) {
    const std::string scaled = out.node(layer, "Mul", {x, out.number(static_cast<float>(1 / std::numbers::sqrt2))});
    const std::string twice_phi = out.node(layer, "Add", {out.node(layer, "Erf", {scaled}), out.number(1)});
    return out.node(layer, "Mul", {out.node(layer, "Mul", {x, out.number(0.5f)}), twice_phi});
}

}  // namespace

std::string activation_onnx(OnnxExport& out, const Layer& layer, const std::string& x) {
    const Activation& activation = layer.options.activation;
    switch (activation.kind) {
        case ActivationKind::none: return x;
        case ActivationKind::relu: return out.node(layer, "Relu", {x});
        case ActivationKind::leaky_relu: return out.node(layer, "LeakyRelu", {x}, {{"alpha", activation.slope}});
        case ActivationKind::tanh: return out.node(layer, "Tanh", {x});
        case ActivationKind::sigmoid: return out.node(layer, "Sigmoid", {x});
        case ActivationKind::elu: return out.node(layer, "Elu", {x}, {{"alpha", activation.slope}});
        case ActivationKind::gelu: return gelu_onnx(out, layer, x);
        case ActivationKind::swish: return out.node(layer, "Mul", {x, out.node(layer, "Sigmoid", {x})});
        case ActivationKind::softplus: return out.node(layer, "Softplus", {x});
        case ActivationKind::log: {
            const std::string above = out.node(layer, "Relu", {x});
            return out.node(layer, "Log", {out.node(layer, "Add", {above, out.number(activation.slope)})});
        }
    }
    return x;
}

namespace {

TensorType type_of_activation(const Rules& rules) {
    const Activation& activation = rules.layer.options.activation;
    check_activation(rules, activation);
    if (activation.kind == ActivationKind::none) rules.fail("names no activation");
    return rules.numbers(0);
}

TensorType type_of_dropout(const Rules& rules) {
    const float rate = rules.layer.options.rate;
    if (!(rate >= 0 && rate < 1)) rules.fail("rate is {}, must be at least 0 and below 1", rate);
    return rules.numbers(0);
}

constexpr LayerKind kActivationKinds[] = {
    {.kind = Kind::activation,
     .name = "activation",
     .type = type_of_activation,
     .onnx = [](OnnxExport& out, const Layer& layer) { return activation_onnx(out, layer, out.input_of(layer, 0)); },
     .text = [](const LayerOptions& options) { return activation_text(options.activation); },
     .is_stored = true},
    {.kind = Kind::dropout,
     .name = "dropout",
     .type = type_of_dropout,
     .onnx = [](OnnxExport& out, const Layer& layer) { return out.input_of(layer, 0); },
     .text = [](const LayerOptions& options) { return fmt::format("{}", options.rate); }},
};

}  // namespace

std::span<const LayerKind> activation_kinds() {
    return kActivationKinds;
}

}  // namespace stipple::network
