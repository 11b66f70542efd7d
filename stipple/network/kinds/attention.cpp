// attend: every point looks at points of its cloud. In ONNX: the products of all pairs, a Softmax, a product with the
// values.

#include <cmath>

#include "stipple/core/checked.h"
#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {
namespace {

constexpr std::string_view kNormaliseNames[] = {"row", "joint", "none"};

// === ONNX

std::string of_unit_length(OnnxExport& out, const Layer& layer, const std::string& x) {
    const std::string squares =
        out.node(layer, "ReduceSumSquare", {x}, {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{1}}});
    const std::string length = out.node(layer, "Sqrt", {out.node(layer, "Add", {squares, out.number(kUnitGuard)})});
    return out.node(layer, "Div", {x, length});
}

/// Softmax over the last dimension, or over all pairs of a cloud.
std::string softmax_of_pairs(OnnxExport& out, const Layer& layer, const std::string& pairs) {
    if (layer.options.normalise == Normalise::row) return out.node(layer, "Softmax", {pairs}, {{"axis", int64_t{-1}}});
    const std::string flat = out.node(layer, "Reshape", {pairs, out.integers({0, -1})});
    const std::string weights = out.node(layer, "Softmax", {flat}, {{"axis", int64_t{-1}}});
    return out.node(layer, "Reshape", {weights, out.node(layer, "Shape", {pairs})});
}

std::string attend_onnx(OnnxExport& out, const Layer& layer) {
    const LayerOptions& options = layer.options;
    std::string queries = out.input_of(layer, 0), keys = out.input_of(layer, 1);
    if (options.unit) {
        queries = of_unit_length(out, layer, queries);
        keys = of_unit_length(out, layer, keys);
    }
    const std::string turned = out.node(layer, "Transpose", {keys}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    std::string weights = out.node(layer, "MatMul", {queries, turned});
    if (options.factor != 1) weights = out.node(layer, "Mul", {weights, out.number(options.factor)});
    std::string self;  // [N, N]: 1 where a point meets itself
    if (options.skips_self) {
        const std::string first = out.node(layer, "Gather", {weights, out.integers({0})}, {{"axis", int64_t{0}}});
        self = out.node(layer, "EyeLike", {out.node(layer, "Squeeze", {first, out.integers({0})})});
    }
    if (options.normalise == Normalise::none) {
        const std::string count = out.node(layer, "Cast", {out.count_points(layer, out.type_of_input(layer, 1))},
                                           {{"to", static_cast<int64_t>(OnnxType::float32)}});
        weights = out.node(layer, "Div", {weights, count});
    } else {
        constexpr float kFar = 1e30f;
        if (!self.empty())
            weights = out.node(layer, "Sub", {weights, out.node(layer, "Mul", {self, out.number(kFar)})});
        weights = softmax_of_pairs(out, layer, weights);
    }
    if (!self.empty()) {
        const std::string others = out.node(layer, "Sub", {out.number(1), self});
        weights = out.node(layer, "Mul", {weights, others});
    }
    return out.node(layer, "MatMul", {weights, out.input_of(layer, 2)});
}

// === Type, text

TensorType type_of_attend(const Rules& rules) {
    const LayerOptions& options = rules.layer.options;
    const TensorType &queries = rules.points(0), &keys = rules.points(1), &values = rules.points(2);
    if (queries.channels != keys.channels)
        rules.fail("needs queries and keys of the same channels, {} and {}", rules.got(0), rules.got(1));
    rules.same_rows(1, 2);
    if (options.skips_self && queries.set != keys.set)
        rules.fail("a query is none of its keys, {} and {}", rules.got(0), rules.got(1));
    if (keys.channels > kMostAttendChannels || values.channels > kMostAttendChannels)
        rules.fail("takes {} channels at most, {} and {}", kMostAttendChannels, rules.got(1), rules.got(2));
    if (!std::isfinite(options.factor)) rules.fail("its factor is {}", options.factor);
    return rows_of(queries, 1, values.channels);
}

std::string attend_text(const LayerOptions& options) {
    std::string text(name_of(options.normalise));
    if (options.factor != 1) text += fmt::format(", x {}", options.factor);
    if (options.unit) text += ", cosine";
    if (options.skips_self) text += ", not itself";
    return text;
}

int64_t attend_multiply_adds(const Network& network, const Layer& layer, int64_t n) {
    const TensorType &keys = network[layer.inputs[1]].type, &values = network[layer.inputs[2]].type;
    return checked_mul(keys.points > 0 ? keys.points : n, keys.channels + values.channels);
}

constexpr LayerKind kAttentionKinds[] = {
    {.kind = Kind::attend,
     .name = "attend",
     .inputs = 3,
     .group = KindGroup::neighbours,
     .type = type_of_attend,
     .onnx = attend_onnx,
     .text = attend_text,
     .multiply_adds = attend_multiply_adds},
};

}  // namespace

std::string_view name_of(Normalise normalise) {
    const auto index = static_cast<size_t>(normalise);
    return index < std::size(kNormaliseNames) ? kNormaliseNames[index] : "unknown";
}

std::span<const LayerKind> attention_kinds() {
    return kAttentionKinds;
}

}  // namespace stipple::network
