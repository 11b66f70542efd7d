// Maxima and sums.

#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {
namespace {

TensorType type_of_cloud_reduction(const Rules& rules) {
    return clouds_of(rules.rows(0).channels);
}

TensorType type_of_max_rows(const Rules& rules) {
    return rows_of(rules.rows(0), 1, rules.type(0).channels);
}

TensorType type_of_sum_channels(const Rules& rules) {
    return with_channels(rules.numbers(0), 1);
}

// Opset 17: ReduceSum takes its axes as an input, ReduceMax as an attribute.
std::string max_onnx(OnnxExport& out, const Layer& layer) {
    const std::string& x = out.input_of(layer, 0);
    const bool has_rows = out.type_of_input(layer, 0).width > 1, is_of_points = layer.kind == Kind::max_points;
    if (!is_of_points && !has_rows) return x;
    std::vector<int64_t> axes;
    if (is_of_points) axes.push_back(1);
    if (has_rows) axes.push_back(2);
    const auto twin = out.twins.find(x);
    const bool is_twin = twin != out.twins.end();
    for (int64_t& axis : axes) axis += is_twin;
    const std::string most =
        out.node(layer, "ReduceMax", {is_twin ? twin->second : x}, {{"axes", axes}, {"keepdims", int64_t{0}}});
    return is_twin && !is_of_points ? channels_last(out, layer, most, layer.type) : most;
}

std::string sum_points_onnx(OnnxExport& out, const Layer& layer) {
    const bool has_rows = out.type_of_input(layer, 0).width > 1;
    const std::string axes = out.integers(has_rows ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
    return out.node(layer, "ReduceSum", {out.input_of(layer, 0), axes}, {{"keepdims", int64_t{0}}});
}

std::string sum_channels_onnx(OnnxExport& out, const Layer& layer) {
    return out.node(layer, "ReduceSum", {out.input_of(layer, 0), out.integers({-1})}, {{"keepdims", int64_t{1}}});
}

constexpr LayerKind kReductionKinds[] = {
    {.kind = Kind::max_points,
     .name = "max_points",
     .group = KindGroup::reductions,
     .type = type_of_cloud_reduction,
     .onnx = max_onnx,
     .is_stored = true},
    {.kind = Kind::sum_points,
     .name = "sum_points",
     .group = KindGroup::reductions,
     .type = type_of_cloud_reduction,
     .onnx = sum_points_onnx},
    {.kind = Kind::max_rows,
     .name = "max_rows",
     .group = KindGroup::reductions,
     .type = type_of_max_rows,
     .onnx = max_onnx,
     .is_stored = true},
    {.kind = Kind::sum_channels,
     .name = "sum_channels",
     .group = KindGroup::reductions,
     .type = type_of_sum_channels,
     .onnx = sum_channels_onnx},
};

}  // namespace

std::span<const LayerKind> reduction_kinds() {
    return kReductionKinds;
}

}  // namespace stipple::network
