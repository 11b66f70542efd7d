// Linear layers. In ONNX: MatMul + Add (+ Relu) on [.., channels], which every runtime runs as one product over all
// rows, or a convolution of one tap on [B, channels, ..].

#include <algorithm>
#include <cmath>

#include "stipple/core/checked.h"
#include "stipple/network/describe.h"
#include "stipple/network/kinds/activation.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {

namespace {

/// What a linear layer computes, its batch norm folded in: x matrix + bias.
struct Product {
    int64_t inputs = 0, outputs = 0;
    std::vector<float> matrix;  // [inputs, outputs]
    std::vector<float> bias;    // [outputs], or empty
};

Product product_of(const OnnxExport& out, const Layer& layer, bool fold_norm, bool with_identity) {
    const LayerOptions& options = layer.options;
    const std::string& prefix = layer.parameters;
    Product product{out.type_of_input(layer, 0).channels, options.channels, {}, {}};
    const size_t ins = static_cast<size_t>(product.inputs), outs = static_cast<size_t>(product.outputs);
    std::vector<double> scale(outs, 1), bias(outs, 0);
    if (options.bias) {
        const auto given = out.parameter(prefix + ".bias");
        bias.assign(given.begin(), given.end());
    }
    if (fold_norm) {
        const auto gamma = out.parameter(prefix + ".norm.weight"), beta = out.parameter(prefix + ".norm.bias");
        const auto mean = out.parameter(prefix + ".norm.running_mean"),
                   variance = out.parameter(prefix + ".norm.running_var");
        for (size_t o = 0; o < outs; ++o) {
            scale[o] = gamma[o] / std::sqrt(static_cast<double>(variance[o]) + options.norm_eps);
            bias[o] = (bias[o] - mean[o]) * scale[o] + beta[o];
            STIPPLE_REQUIRE(std::isfinite(scale[o]) && std::isfinite(bias[o]),
                            "onnx: layer {}: the batch norm of channel {} cannot be folded, its variance is {}",
                            layer.name, o, variance[o]);
        }
    }
    if (with_identity) {
        const size_t k = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(outs))));
        for (size_t i = 0; i < k; ++i) bias[i * k + i] += 1;
    }
    if (options.bias || fold_norm || with_identity) product.bias.assign(bias.begin(), bias.end());
    const auto weight = out.parameter(prefix + ".weight");
    product.matrix.resize(ins * outs);
    for (size_t o = 0; o < outs; ++o)
        for (size_t i = 0; i < ins; ++i)
            product.matrix[i * outs + o] = static_cast<float>(weight[o * ins + i] * scale[o]);
    return product;
}

/// x as int8 and back: what the runtime takes for an int8 product. Layers that read the same value at the same scale
/// share it.
std::string quantised_input(OnnxExport& out, const Layer& layer, const std::string& x, float range) {
    const std::string scale = out.number(range / 127);
    const int8_t zero = 0;
    const std::string zero_point = out.bytes8("zero", {}, std::span(&zero, 1));
    for (const OnnxNode& node : out.model.nodes) {
        if (node.op != "QuantizeLinear" || node.inputs[0] != x || node.inputs[1] != scale) continue;
        for (const OnnxNode& back : out.model.nodes)
            if (back.op == "DequantizeLinear" && back.inputs[0] == node.output) return back.output;
    }
    const std::string quantised = out.node(layer, "QuantizeLinear", {x, scale, zero_point});
    return out.node(layer, "DequantizeLinear", {quantised, scale, zero_point});
}

/// The matrix as int8, one scale for each output channel.
std::string quantised_matrix(OnnxExport& out, const Layer& layer, const Product& product) {
    const size_t ins = static_cast<size_t>(product.inputs), outs = static_cast<size_t>(product.outputs);
    std::vector<float> scale(outs, 1);
    std::vector<int8_t> quantised(ins * outs), zeros(outs, 0);
    for (size_t o = 0; o < outs; ++o) {
        float largest = 0;
        for (size_t i = 0; i < ins; ++i) largest = std::max(largest, std::fabs(product.matrix[i * outs + o]));
        if (largest / 127 > 0) scale[o] = largest / 127;
        for (size_t i = 0; i < ins; ++i)
            quantised[i * outs + o] = static_cast<int8_t>(
                std::clamp(std::nearbyint(product.matrix[i * outs + o] / scale[o]), -127.0f, 127.0f));
    }
    const std::string& prefix = layer.parameters;
    return out.node(layer, "DequantizeLinear",
                    {out.bytes8(prefix + ".weight.int8", {product.inputs, product.outputs}, quantised),
                     out.floats(prefix + ".weight.scale", {product.outputs}, scale),
                     out.bytes8(fmt::format("zeros[{}]", outs), {product.outputs}, zeros)},
                    {{"axis", int64_t{1}}});
}

/// Channels are in dimension 1.
std::string export_norm(OnnxExport& out, const Layer& layer, const std::string& x) {
    const auto parameter = [&](const char* name) {
        const std::string full = layer.parameters + ".norm." + name;
        return out.floats(full, {layer.options.channels}, out.parameter(full));
    };
    return out.node(layer, "BatchNormalization",
                    {x, parameter("weight"), parameter("bias"), parameter("running_mean"), parameter("running_var")},
                    {{"epsilon", layer.options.norm_eps}});
}

/// Rows of points become rows of one matrix and back.
std::string export_norm_of_rows(OnnxExport& out, const Layer& layer, const std::string& x) {
    if (layer.type.level == Level::cloud) return export_norm(out, layer, x);
    const std::string rows = out.node(layer, "Reshape", {x, out.integers({-1, layer.options.channels})});
    return out.node(layer, "Reshape", {export_norm(out, layer, rows), out.node(layer, "Shape", {x})});
}

std::string export_convolution(OnnxExport& out, const Layer& layer, const Product& product, bool has_norm) {
    const size_t ins = static_cast<size_t>(product.inputs), outs = static_cast<size_t>(product.outputs);
    std::vector<float> taps(ins * outs);
    for (size_t i = 0; i < ins; ++i)
        for (size_t o = 0; o < outs; ++o) taps[o * ins + i] = product.matrix[i * outs + o];
    std::vector<int64_t> dims = {product.outputs, product.inputs, 1};
    if (layer.type.width > 1) dims.push_back(1);
    std::vector<std::string> inputs = {channels_first(out, layer, out.input_of(layer, 0), out.type_of_input(layer, 0)),
                                       out.floats(layer.parameters + ".weight", dims, taps)};
    if (!product.bias.empty())
        inputs.push_back(out.floats(layer.parameters + ".bias", {product.outputs}, product.bias));
    std::string x = out.node(layer, "Conv", inputs);
    if (has_norm) x = export_norm(out, layer, x);
    return channels_last(out, layer, activation_onnx(out, layer, x), layer.type);
}

std::string linear_onnx(OnnxExport& out, const Layer& layer) {
    const bool with_identity = out.takes_identity[static_cast<size_t>(&layer - out.network.layers.data())];
    const auto range = out.options.ranges.find(layer.name);
    const bool is_quantised = range != out.options.ranges.end();
    const bool fold_norm = layer.options.norm && (out.options.fold_norm || is_quantised || with_identity);
    const Product product = product_of(out, layer, fold_norm, with_identity);

    const bool has_norm = layer.options.norm && !fold_norm;
    if (out.options.convolutions && !is_quantised && layer.type.level == Level::point)
        return export_convolution(out, layer, product, has_norm);
    std::string x = out.input_of(layer, 0);
    if (is_quantised) {
        const std::string matrix = quantised_matrix(out, layer, product);
        x = out.node(layer, "MatMul", {quantised_input(out, layer, x, range->second), matrix});
    } else {
        x = out.node(layer, "MatMul",
                     {x, out.floats(layer.parameters + ".weight", {product.inputs, product.outputs}, product.matrix)});
    }
    if (!product.bias.empty())
        x = out.node(layer, "Add", {x, out.floats(layer.parameters + ".bias", {product.outputs}, product.bias)});
    if (has_norm) x = export_norm_of_rows(out, layer, x);
    return activation_onnx(out, layer, x);
}

// === Type, text, parameters

TensorType type_of_linear(const Rules& rules) {
    const LayerOptions& options = rules.layer.options;
    rules.extent("channels", options.channels);
    check_activation(rules, options.activation);
    if (options.norm && !(options.norm_eps > 0 && std::isfinite(options.norm_eps)))
        rules.fail("norm_eps is {}, must be positive", options.norm_eps);
    if (options.norm && !(options.norm_momentum > 0 && options.norm_momentum <= 1))
        rules.fail("norm_momentum is {}, must be above 0 and at most 1", options.norm_momentum);
    return with_channels(rules.numbers(0), options.channels);
}

std::string linear_text(const LayerOptions& options) {
    const LayerOptions usual;
    std::string text = fmt::format("{}", options.channels);
    if (!options.bias) text += ", no bias";
    if (options.norm) text += ", norm";
    if (options.norm && options.norm_eps != usual.norm_eps) text += fmt::format(" eps {}", options.norm_eps);
    if (options.norm && options.norm_momentum != usual.norm_momentum)
        text += fmt::format(" momentum {}", options.norm_momentum);
    if (options.activation.kind != ActivationKind::none) text += ", " + activation_text(options.activation);
    if (options.weights != usual.weights) text += fmt::format(", starts {}", name_of(options.weights));
    return text;
}

std::vector<Parameter> linear_parameters(const Network& network, const Layer& layer) {
    const LayerOptions& options = layer.options;
    const int64_t in = input_channels(network, layer), out = options.channels;
    const auto of = [&](const char* name, std::vector<int64_t> shape, Initialiser initialiser, bool is_trained = true) {
        return Parameter{layer.parameters + name, std::move(shape), initialiser, is_trained, layer.name};
    };
    const Initialiser bias =
        options.weights == Initialiser::fan_in_uniform ? Initialiser::fan_in_uniform : Initialiser::zeros;
    std::vector<Parameter> all = {of(".weight", {out, in}, options.weights)};
    if (options.bias) all.push_back(of(".bias", {out}, bias));
    if (!options.norm) return all;
    all.push_back(of(".norm.weight", {out}, Initialiser::ones));
    all.push_back(of(".norm.bias", {out}, Initialiser::zeros));
    all.push_back(of(".norm.running_mean", {out}, Initialiser::zeros, false));
    all.push_back(of(".norm.running_var", {out}, Initialiser::ones, false));
    return all;
}

int64_t linear_multiply_adds(const Network& network, const Layer& layer, int64_t) {
    return checked_mul(network[layer.inputs[0]].type.channels, layer.type.channels);
}

constexpr LayerKind kLinearKinds[] = {
    {.kind = Kind::linear,
     .name = "linear",
     .group = KindGroup::products,
     .type = type_of_linear,
     .onnx = linear_onnx,
     .text = linear_text,
     .parameters = linear_parameters,
     .multiply_adds = linear_multiply_adds,
     .is_stored = true},
};

}  // namespace

std::span<const LayerKind> linear_kinds() {
    return kLinearKinds;
}

}  // namespace stipple::network
