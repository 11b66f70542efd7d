// Numbers moved or repeated, none computed.

#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {
namespace {

// === concat

TensorType type_of_concat(const Rules& rules) {
    TensorType type = rules.numbers(0);
    for (size_t i = 1; i < rules.inputs(); ++i) {
        rules.same_rows(0, i);
        type.channels += rules.type(i).channels;
    }
    return type;
}

std::string concat_onnx(OnnxExport& out, const Layer& layer) {
    std::vector<std::string> parts;
    bool has_twin = false;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
        parts.push_back(out.input_of(layer, i));
        has_twin |= out.twins.contains(parts.back());
    }
    if (has_twin) {
        for (std::string& part : parts) part = channels_first(out, layer, part, layer.type);
        return channels_last(out, layer, out.node(layer, "Concat", parts, {{"axis", int64_t{1}}}), layer.type);
    }
    return out.node(layer, "Concat", parts, {{"axis", channel_axis(layer.type)}});
}

// === slice

TensorType type_of_slice(const Rules& rules) {
    const int64_t begin = rules.layer.options.begin, end = rules.layer.options.end;
    const TensorType& type = rules.numbers(0);
    if (begin < 0 || begin >= end || end > type.channels)
        rules.fail("cannot take channels {} to {}, {}", begin, end, rules.got(0));
    return with_channels(type, end - begin);
}

std::string slice_text(const LayerOptions& options) {
    return options.end - options.begin == 1 ? fmt::format("channel {}", options.begin)
                                            : fmt::format("channels {} to {}", options.begin, options.end - 1);
}

std::string slice_onnx(OnnxExport& out, const Layer& layer) {
    const int64_t begin = layer.options.begin, end = layer.options.end;
    return out.node(layer, "Slice",
                    {out.input_of(layer, 0), out.integers({begin}), out.integers({end}), out.integers({-1})});
}

// === reverse

std::string reverse_onnx(OnnxExport& out, const Layer& layer) {
    std::vector<int64_t> order;
    for (int64_t i = layer.type.channels; i-- > 0;) order.push_back(i);
    return out.node(layer, "Gather", {out.input_of(layer, 0), out.integers(order)},
                    {{"axis", channel_axis(layer.type)}});
}

// === repeat

TensorType type_of_repeat(const Rules& rules) {
    const int64_t width = rules.layer.options.width;
    rules.extent("width", width);
    const TensorType& type = rules.numbers(0);
    if (type.level == Level::point) return rows_of(rules.points(0), width, type.channels);
    if (width != 1) rules.fail("repeats a cloud's row for every point with width 1, not {}; {}", width, rules.got(0));
    const int32_t set = rules.layer.options.set;
    const Layer* before = rules.layer_of_set(set);
    if (!before && set != 0) rules.fail("no layer before it has points of set {}", set);
    return before ? rows_of(before->type, 1, type.channels) : points_of(type.channels);
}

std::string repeat_text(const LayerOptions& options) {
    if (options.set != 0) return fmt::format("for set {}", options.set);
    return options.width == 1 ? "" : fmt::format("x {}", options.width);
}

std::string repeat_onnx(OnnxExport& out, const Layer& layer) {
    const TensorType& type = out.type_of_input(layer, 0);
    const std::string& x = out.input_of(layer, 0);
    if (type.level == Level::cloud) {
        const std::string rows = out.node(layer, "Unsqueeze", {x, out.integers({1})});
        const std::string one = out.integers({1});
        const std::string shape =
            out.node(layer, "Concat", {one, out.count_points(layer, layer.type), one}, {{"axis", int64_t{0}}});
        return out.node(layer, "Expand", {rows, shape});
    }
    if (layer.type.width == 1) return x;
    const std::string rows = out.node(layer, "Unsqueeze", {x, out.integers({2})});
    return out.node(layer, "Expand", {rows, out.integers({1, 1, layer.type.width, 1})});
}

// === unflatten

TensorType type_of_unflatten(const Rules& rules) {
    const LayerOptions& options = rules.layer.options;
    rules.extent("channels", options.channels);
    if (options.set < 0 || options.set >= kMostSets)
        rules.fail("point set {}, must be 0 to {}", options.set, kMostSets - 1);
    const int64_t points = rules.clouds(0).channels / options.channels;
    if (points * options.channels != rules.type(0).channels)
        rules.fail("needs a multiple of {} channels, {}", options.channels, rules.got(0));
    const Layer* before = rules.layer_of_set(options.set);
    if (before && before->type.points != points)
        rules.fail("makes {} points of set {}, {} is {}", points, options.set, before->name, to_string(before->type));
    return {Level::point, 1, options.channels, false, options.set, 0, points};
}

std::string unflatten_text(const LayerOptions& options) {
    return fmt::format("{} of set {}", options.channels, options.set);
}

std::string unflatten_onnx(OnnxExport& out, const Layer& layer) {
    return out.node(layer, "Reshape",
                    {out.input_of(layer, 0), out.integers({-1, layer.type.points, layer.type.channels})});
}

// === regroup

TensorType type_of_regroup(const Rules& rules) {
    const int64_t channels = rules.layer.options.channels;
    rules.extent("channels", channels);
    const TensorType& type = rules.rows(0);
    const int64_t numbers = type.width * type.channels;
    if (numbers % channels != 0)
        rules.fail("cannot cut {} numbers of a point into rows of {}, {}", numbers, channels, rules.got(0));
    return rows_of(type, numbers / channels, channels);
}

std::string regroup_onnx(OnnxExport& out, const Layer& layer) {
    std::vector<int64_t> shape = {0, 0};  // as they are
    if (layer.type.width > 1) shape.push_back(layer.type.width);
    shape.push_back(layer.type.channels);
    return out.node(layer, "Reshape", {out.input_of(layer, 0), out.integers(shape)});
}

constexpr LayerKind kChannelKinds[] = {
    {.kind = Kind::concat,
     .name = "concat",
     .inputs = kAnyInputs,
     .group = KindGroup::channels,
     .type = type_of_concat,
     .onnx = concat_onnx},
    {.kind = Kind::slice,
     .name = "slice",
     .group = KindGroup::channels,
     .type = type_of_slice,
     .onnx = slice_onnx,
     .text = slice_text},
    {.kind = Kind::reverse,
     .name = "reverse",
     .group = KindGroup::channels,
     .type = type_of_numbers,
     .onnx = reverse_onnx},
    {.kind = Kind::repeat,
     .name = "repeat",
     .group = KindGroup::channels,
     .type = type_of_repeat,
     .onnx = repeat_onnx,
     .text = repeat_text},
    {.kind = Kind::unflatten,
     .name = "unflatten",
     .group = KindGroup::channels,
     .type = type_of_unflatten,
     .onnx = unflatten_onnx,
     .text = unflatten_text},
    {.kind = Kind::regroup,
     .name = "regroup",
     .group = KindGroup::channels,
     .type = type_of_regroup,
     .onnx = regroup_onnx,
     .text = [](const LayerOptions& options) { return fmt::format("rows of {}", options.channels); }},
};

}  // namespace

std::span<const LayerKind> channel_kinds() {
    return kChannelKinds;
}

}  // namespace stipple::network
