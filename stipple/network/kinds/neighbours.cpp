// Layers over neighbours. In ONNX: distances of all pairs and TopK, GatherND within each cloud, and what is made of
// them.

#include "stipple/core/checked.h"
#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {

namespace {

/// Squared distances of all pairs of a cloud, [B, N, M], coordinate by coordinate: (dx dx + dy dy) + dz dz as our own
/// search computes them, so that the same neighbours come out.
std::string distances_of_few_channels(OnnxExport& out, const Layer& layer) {
    const bool is_own = layer.inputs.size() == 1;
    std::string sum;
    for (int64_t c = 0; c < out.type_of_input(layer, 0).channels; ++c) {
        const auto slice = [&](const std::string& x) {  // [B, N, 1]
            return out.node(layer, "Slice", {x, out.integers({c}), out.integers({c + 1}), out.integers({2})});
        };
        const std::string column = slice(out.input_of(layer, 0));
        const std::string other = is_own ? column : slice(out.input_of(layer, 1));
        const std::string row = out.node(layer, "Transpose", {other}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
        const std::string difference = out.node(layer, "Sub", {column, row});
        const std::string square = out.node(layer, "Mul", {difference, difference});
        sum = sum.empty() ? square : out.node(layer, "Add", {sum, square});
    }
    return sum;
}

/// The same as |y|^2 - 2 x y for wide features: one product. |x|^2 is left out, it does not change the order.
std::string distances_of_many_channels(OnnxExport& out, const Layer& layer) {
    const std::string &x = out.input_of(layer, 0), &y = out.input_of(layer, layer.inputs.size() - 1);
    const std::vector<int64_t> turn = {0, 2, 1};
    const std::string norm =
        out.node(layer, "ReduceSumSquare", {y}, {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{1}}});
    const std::string norm_row = out.node(layer, "Transpose", {norm}, {{"perm", turn}});
    const std::string product = out.node(layer, "MatMul", {x, out.node(layer, "Transpose", {y}, {{"perm", turn}})});
    return out.node(layer, "Sub", {norm_row, out.node(layer, "Mul", {product, out.number(2)})});
}

std::string pair_distances(OnnxExport& out, const Layer& layer) {
    constexpr int64_t kFew = 8;
    return out.type_of_input(layer, 0).channels <= kFew ? distances_of_few_channels(out, layer)
                                                        : distances_of_many_channels(out, layer);
}

std::string knn_onnx(OnnxExport& out, const Layer& layer) {
    // TopK's first output, the distances, is not used. Equal distances: the lower index first, says its definition.
    const std::string distances = out.unique(layer.name + "/distances");
    return out.node(layer, "TopK", {pair_distances(out, layer), out.integers({layer.type.width})},
                    {{"axis", int64_t{-1}}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}}, {distances});
}

/// x_j for every neighbour: [B, N, k, c]. Several layers that ask for the same share it.
std::string gathered(OnnxExport& out, const Layer& layer) {
    const std::string& x = out.input_of(layer, 0);
    std::string positions = out.input_of(layer, 1);
    if (out.network[layer.inputs[1]].kind == Kind::input)
        positions = out.node(layer, "Cast", {positions}, {{"to", static_cast<int64_t>(OnnxType::int64)}});
    const auto find = [&](std::string_view op, const std::string& first, const std::string& second) -> std::string {
        for (const OnnxNode& node : out.model.nodes)
            if (node.op == op && node.inputs[0] == first && node.inputs[1] == second) return node.output;
        return {};
    };
    const std::string axis = out.integers({3});
    std::string tuples = find("Unsqueeze", positions, axis);
    if (tuples.empty()) tuples = out.node(layer, "Unsqueeze", {positions, axis});
    const std::string known = find("GatherND", x, tuples);
    return known.empty() ? out.node(layer, "GatherND", {x, tuples}, {{"batch_dims", int64_t{1}}}) : known;
}

std::string edge_onnx(OnnxExport& out, const Layer& layer) {
    const std::string neighbour = gathered(out, layer);
    const std::string own = out.node(layer, "Unsqueeze", {out.input_of(layer, 0), out.integers({2})});
    const std::string own_rows =
        out.node(layer, "Expand", {own, out.integers({1, 1, out.type_of_input(layer, 1).width, 1})});
    std::vector<std::string> parts = {own_rows, neighbour};
    if (layer.kind == Kind::edge) {
        parts.push_back(out.node(layer, "Sub", {neighbour, own}));
    } else {
        parts.push_back(out.node(layer, "Sub", {own, neighbour}));
        parts.push_back(
            out.node(layer, "ReduceL2", {parts.back()}, {{"axes", std::vector<int64_t>{3}}, {"keepdims", int64_t{1}}}));
    }
    const std::string rows = out.node(layer, "Concat", parts, {{"axis", int64_t{3}}});
    return out.without_rows(layer, rows, layer.type);
}

std::string interpolate_onnx(OnnxExport& out, const Layer& layer) {
    const std::string weights = out.with_rows(layer, out.input_of(layer, 0), out.type_of_input(layer, 0));
    const std::string values = out.with_rows(layer, out.input_of(layer, 1), out.type_of_input(layer, 1));
    const std::string turned = out.node(layer, "Transpose", {weights}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    return out.without_rows(layer, out.node(layer, "MatMul", {turned, values}), layer.type);
}

std::string gather_onnx(OnnxExport& out, const Layer& layer) {
    return out.without_rows(layer, gathered(out, layer), layer.type);
}

// === Types

TensorType type_of_knn(const Rules& rules) {
    const TensorType& queries = rules.points(0);
    const TensorType& points = rules.points(rules.inputs() - 1);
    if (queries.channels != points.channels)
        rules.fail("needs queries and points of the same channels, {} and {}", rules.got(0), rules.got(1));
    rules.extent("k", rules.layer.options.width);
    return {Level::point, rules.layer.options.width, 1, true, queries.set, points.set, queries.points};
}

/// Channels of each of a point's neighbours: so many times those of the point, and some more.
template <int64_t kTimes, int64_t kMore>
TensorType type_of_neighbours(const Rules& rules) {
    const TensorType& x = rules.points(0);
    const TensorType& indices = rules.indices(1);
    if (indices.of != x.set || (kTimes > 1 && indices.set != x.set))
        rules.fail("needs indices {} the points of its set, {} and {}", kTimes > 1 ? "from and to" : "of", rules.got(0),
                   rules.got(1));
    return rows_of(indices, indices.width, kTimes * x.channels + kMore);
}

TensorType type_of_interpolate(const Rules& rules) {
    if (rules.rows(0).width != rules.rows(1).width || rules.type(0).set != rules.type(1).set)
        rules.fail("needs weights and values of the same rows, {} and {}", rules.got(0), rules.got(1));
    return rows_of(rules.type(0), rules.type(0).channels, rules.type(1).channels);
}

int64_t interpolate_multiply_adds(const Network& network, const Layer& layer, int64_t) {
    return checked_mul(network[layer.inputs[0]].type.width, layer.type.channels);
}

constexpr LayerKind kNeighbourKinds[] = {
    {.kind = Kind::knn,
     .name = "knn",
     .inputs = kOneOrTwoInputs,
     .group = KindGroup::neighbours,
     .type = type_of_knn,
     .onnx = knn_onnx,
     .text = [](const LayerOptions& options) { return fmt::format("k {}", options.width); }},
    {.kind = Kind::gather,
     .name = "gather",
     .inputs = 2,
     .group = KindGroup::neighbours,
     .type = type_of_neighbours<1, 0>,
     .onnx = gather_onnx},
    {.kind = Kind::edge,
     .name = "edge",
     .inputs = 2,
     .group = KindGroup::neighbours,
     .type = type_of_neighbours<3, 0>,
     .onnx = edge_onnx},
    {.kind = Kind::edge_distance,
     .name = "edge_distance",
     .inputs = 2,
     .group = KindGroup::neighbours,
     .type = type_of_neighbours<3, 1>,
     .onnx = edge_onnx},
    {.kind = Kind::interpolate,
     .name = "interpolate",
     .inputs = 2,
     .group = KindGroup::neighbours,
     .type = type_of_interpolate,
     .onnx = interpolate_onnx,
     .multiply_adds = interpolate_multiply_adds},
};

}  // namespace

std::span<const LayerKind> neighbour_kinds() {
    return kNeighbourKinds;
}

}  // namespace stipple::network
