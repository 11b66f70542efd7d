// Numbers made of numbers at the same place, of the rows of a point or of the channels of a row.

#include <cmath>

#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {
namespace {

TensorType type_of_softmax_rows(const Rules& rules) {
    return rules.rows(0);
}

std::string softmax_rows_onnx(OnnxExport& out, const Layer& layer) {
    const std::string rows = out.with_rows(layer, out.input_of(layer, 0), layer.type);
    return out.without_rows(layer, out.node(layer, "Softmax", {rows}, {{"axis", int64_t{2}}}), layer.type);
}

std::string log_softmax_onnx(OnnxExport& out, const Layer& layer) {
    return out.node(layer, "LogSoftmax", {out.input_of(layer, 0)}, {{"axis", int64_t{-1}}});
}

// === layer_norm

TensorType type_of_layer_norm(const Rules& rules) {
    const float eps = rules.layer.options.norm_eps;
    if (!(eps > 0 && std::isfinite(eps))) rules.fail("norm_eps is {}, must be positive", eps);
    return rules.numbers(0);
}

std::string layer_norm_text(const LayerOptions& options) {
    return options.norm_eps == LayerOptions().norm_eps ? "" : fmt::format("eps {}", options.norm_eps);
}

std::vector<Parameter> layer_norm_parameters(const Network& network, const Layer& layer) {
    const int64_t c = input_channels(network, layer);
    return {{layer.parameters + ".weight", {c}, Initialiser::ones, true, layer.name},
            {layer.parameters + ".bias", {c}, Initialiser::zeros, true, layer.name}};
}

std::string layer_norm_onnx(OnnxExport& out, const Layer& layer) {
    const auto parameter = [&](const char* name) {
        const std::string full = layer.parameters + name;
        return out.floats(full, {layer.type.channels}, out.parameter(full));
    };
    const std::string weight = parameter(".weight"), bias = parameter(".bias");
    return out.node(layer, "LayerNormalization", {out.input_of(layer, 0), weight, bias},
                    {{"axis", int64_t{-1}}, {"epsilon", layer.options.norm_eps}});
}

// === Sums and products

std::string add_onnx(OnnxExport& out, const Layer& layer) {
    return out.node(layer, "Add", {out.input_of(layer, 0), out.input_of(layer, 1)});
}

std::string subtract_onnx(OnnxExport& out, const Layer& layer) {
    return out.node(layer, "Sub", {out.input_of(layer, 0), out.input_of(layer, 1)});
}

std::string multiply_onnx(OnnxExport& out, const Layer& layer) {
    return out.node(layer, "Mul", {out.input_of(layer, 0), out.input_of(layer, 1)});
}

TensorType type_of_scale(const Rules& rules) {
    if (!std::isfinite(rules.layer.options.factor)) rules.fail("factor is not finite");
    return rules.numbers(0);
}

std::string scale_onnx(OnnxExport& out, const Layer& layer) {
    return out.node(layer, "Mul", {out.input_of(layer, 0), out.number(layer.options.factor)});
}

constexpr LayerKind kArithmeticKinds[] = {
    {.kind = Kind::softmax_rows, .name = "softmax_rows", .type = type_of_softmax_rows, .onnx = softmax_rows_onnx},
    {.kind = Kind::log_softmax, .name = "log_softmax", .type = type_of_numbers, .onnx = log_softmax_onnx},
    {.kind = Kind::layer_norm,
     .name = "layer_norm",
     .type = type_of_layer_norm,
     .onnx = layer_norm_onnx,
     .text = layer_norm_text,
     .parameters = layer_norm_parameters},
    {.kind = Kind::add, .name = "add", .inputs = 2, .type = type_of_equal_inputs, .onnx = add_onnx},
    {.kind = Kind::subtract, .name = "subtract", .inputs = 2, .type = type_of_equal_inputs, .onnx = subtract_onnx},
    {.kind = Kind::multiply, .name = "multiply", .inputs = 2, .type = type_of_equal_inputs, .onnx = multiply_onnx},
    {.kind = Kind::scale,
     .name = "scale",
     .type = type_of_scale,
     .onnx = scale_onnx,
     .text = [](const LayerOptions& options) { return fmt::format("x {}", options.factor); }},
};

}  // namespace

std::span<const LayerKind> arithmetic_kinds() {
    return kArithmeticKinds;
}

}  // namespace stipple::network
