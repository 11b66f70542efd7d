// One matrix a cloud.

#include <cmath>

#include "stipple/core/checked.h"
#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {
namespace {

// === transform

TensorType type_of_transform(const Rules& rules) {
    const int64_t k = rules.numbers(0).channels;
    if (rules.clouds(1).channels != k * k)
        rules.fail("needs a matrix [B, {}] for {} channels, {}", k * k, k, rules.got(1));
    return rules.type(0);
}

std::string transform_onnx(OnnxExport& out, const Layer& layer) {
    const TensorType& type = out.type_of_input(layer, 0);
    const int64_t k = type.channels;
    std::vector<int64_t> shape = {-1, k, k};
    if (type.width > 1) shape.insert(shape.begin() + 1, 1);
    const std::string matrix = out.node(layer, "Reshape", {out.input_of(layer, 1), out.integers(shape)});
    if (type.level == Level::point) return out.node(layer, "MatMul", {out.input_of(layer, 0), matrix});
    const std::string rows = out.node(layer, "Unsqueeze", {out.input_of(layer, 0), out.integers({1})});
    return out.node(layer, "Squeeze", {out.node(layer, "MatMul", {rows, matrix}), out.integers({1})});
}

int64_t transform_multiply_adds(const Network&, const Layer& layer) {
    return checked_mul(layer.type.channels, layer.type.channels);
}

// === add_identity

TensorType type_of_add_identity(const Rules& rules) {
    const int64_t count = rules.clouds(0).channels;
    const auto k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(count))));
    if (k * k != count) rules.fail("needs a square matrix [B, k*k], {}", rules.got(0));
    return rules.type(0);
}

std::string add_identity_onnx(OnnxExport& out, const Layer& layer) {
    const std::string& x = out.input_of(layer, 0);
    if (joins_bias(out, layer)) return x;
    int64_t k = 1;
    while (k * k < layer.type.channels) ++k;
    std::vector<float> identity(static_cast<size_t>(k * k));
    for (int64_t i = 0; i < k; ++i) identity[static_cast<size_t>(i * k + i)] = 1;
    return out.node(layer, "Add", {x, out.floats(layer.name + ".identity", {k * k}, identity)});
}

constexpr LayerKind kMatrixKinds[] = {
    {.kind = Kind::transform,
     .name = "transform",
     .inputs = 2,
     .group = KindGroup::matrices,
     .type = type_of_transform,
     .onnx = transform_onnx,
     .multiply_adds = transform_multiply_adds},
    {.kind = Kind::add_identity,
     .name = "add_identity",
     .group = KindGroup::matrices,
     .type = type_of_add_identity,
     .onnx = add_identity_onnx},
};

}  // namespace

std::span<const LayerKind> matrix_kinds() {
    return kMatrixKinds;
}

}  // namespace stipple::network
