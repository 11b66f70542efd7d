// Matrices of clouds and of points.

#include <cmath>
#include <limits>

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

int64_t transform_multiply_adds(const Network&, const Layer& layer, int64_t) {
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

// === rotation

TensorType type_of_rotation(const Rules& rules) {
    if (rules.numbers(0).channels != 4) rules.fail("needs quaternions of 4 channels, {}", rules.got(0));
    return with_channels(rules.type(0), 9);
}

// Divided by its largest magnitude first, so that squares neither vanish nor overflow. Of zeros everything is zero but
// the ones of the diagonal.
std::string rotation_onnx(OnnxExport& out, const Layer& layer) {
    const auto node = [&](const char* op, std::vector<std::string> inputs) {
        return out.node(layer, op, std::move(inputs));
    };
    const std::string tiny = out.number(std::numeric_limits<float>::min());
    const std::vector<int64_t> last = {-1};
    const std::string largest = out.node(layer, "ReduceMax", {node("Abs", {out.input_of(layer, 0)})},
                                         {{"axes", last}, {"keepdims", int64_t{1}}});
    const std::string q = node("Div", {out.input_of(layer, 0), node("Max", {largest, tiny})});
    const std::string square = out.node(layer, "ReduceSumSquare", {q}, {{"axes", last}, {"keepdims", int64_t{1}}});
    const std::string factor = node("Div", {out.number(2), node("Max", {square, tiny})});
    std::string part[4];
    for (int64_t i = 0; i < 4; ++i)
        part[i] = node("Slice", {q, out.integers({i}), out.integers({i + 1}), out.integers({-1})});
    const auto product = [&](int a, int b) { return node("Mul", {node("Mul", {part[a], part[b]}), factor}); };
    const std::string one = out.number(1);
    std::vector<std::string> entries(9);
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        entries[static_cast<size_t>(4 * i)] =
            node("Sub", {one, node("Add", {product(1 + j, 1 + j), product(1 + k, 1 + k)})});
        // Above and below the diagonal: the same product, and w times the third axis taken from it or added.
        const std::string same = product(1 + i, 1 + j), turned = product(0, 1 + k);
        const auto at = [&](int row, int column) {
            return static_cast<size_t>(layer.options.inverse ? 3 * column + row : 3 * row + column);
        };
        entries[at(i, j)] = node("Sub", {same, turned});
        entries[at(j, i)] = node("Add", {same, turned});
    }
    return out.node(layer, "Concat", entries, {{"axis", channel_axis(layer.type)}});
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
    {.kind = Kind::rotation,
     .name = "rotation",
     .group = KindGroup::matrices,
     .type = type_of_rotation,
     .onnx = rotation_onnx},
};

}  // namespace

std::span<const LayerKind> matrix_kinds() {
    return kMatrixKinds;
}

}  // namespace stipple::network
