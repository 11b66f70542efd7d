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
