// Where a network begins: inputs, numbers that are learned, constants.

#include <algorithm>
#include <cmath>

#include "stipple/network/describe.h"
#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {
namespace {

TensorType type_of_input(const Rules& rules) {
    const TensorType& type = rules.layer.options.type;
    rules.extent("channels", type.channels);
    rules.extent("width", type.width);
    if (type.level == Level::cloud && (type.width != 1 || type.is_index))
        rules.fail("a cloud has one row of numbers, not {} rows{}", type.width, type.is_index ? " of indices" : "");
    if (type.is_index && type.channels != 1) rules.fail("indices have one channel, not {}", type.channels);
    if (type.set < 0 || type.set >= kMostSets || type.of < 0 || type.of >= kMostSets)
        rules.fail("point set {}, must be 0 to {}", std::max(type.set, type.of), kMostSets - 1);
    if (type.level == Level::cloud && type.set != 0) rules.fail("a cloud is in no point set, not in {}", type.set);
    if (!type.is_index && type.of != 0) rules.fail("numbers name no points of set {}", type.of);
    const Layer* before = type.level == Level::point ? rules.layer_of_set(type.set) : nullptr;
    if (type.points != 0 || (before && before->type.points != 0))
        rules.fail("the points of set {} are counted by the network", type.set);
    return type;
}

std::string input_onnx(OnnxExport&, const Layer& layer) {
    return layer.name;
}

// === learned

TensorType type_of_learned(const Rules& rules) {
    rules.extent("channels", rules.layer.options.channels);
    const Initialiser start = rules.layer.options.weights;
    if (start != Initialiser::zeros && start != Initialiser::ones)
        rules.fail("starts {}, must be zeros or ones", name_of(start));
    return clouds_of(rules.layer.options.channels);
}

std::string learned_text(const LayerOptions& options) {
    const std::string channels = fmt::format("{}", options.channels);
    const bool is_told = options.weights != LayerOptions().weights;  // not in brief
    return is_told ? fmt::format("{}, starts {}", channels, name_of(options.weights)) : channels;
}

std::vector<Parameter> learned_parameters(const Network&, const Layer& layer) {
    return {{layer.parameters + ".value", {layer.options.channels}, layer.options.weights, true, layer.name}};
}

std::string row_for_clouds(OnnxExport& out, const Layer& layer, const std::string& name,
                           std::span<const float> values) {
    const std::string value = out.floats(name, {1, layer.type.channels}, values);
    const std::string clouds = out.count_clouds();
    const std::string shape = out.node(layer, "Concat", {clouds, out.integers({1})}, {{"axis", int64_t{0}}});
    return out.node(layer, "Expand", {value, shape});
}

std::string learned_onnx(OnnxExport& out, const Layer& layer) {
    const std::string name = layer.parameters + ".value";
    return row_for_clouds(out, layer, name, out.parameter(name));
}

// === constant

TensorType type_of_constant(const Rules& rules) {
    const std::vector<float>& values = rules.layer.options.values;
    if (values.empty()) rules.fail("has no numbers");
    for (const float value : values)
        if (!std::isfinite(value)) rules.fail("one of its numbers is {}", value);
    return clouds_of(static_cast<int64_t>(values.size()));
}

/// Few numbers as they are, of more how many there are.
std::string constant_text(const LayerOptions& options) {
    constexpr size_t kFew = 4;
    if (options.values.size() > kFew) return fmt::format("{} numbers", options.values.size());
    std::string text;
    for (const float value : options.values) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
    return text;
}

std::string constant_onnx(OnnxExport& out, const Layer& layer) {
    return row_for_clouds(out, layer, layer.name + ".value", layer.options.values);
}

constexpr LayerKind kInputKinds[] = {
    {.kind = Kind::input,
     .name = "input",
     .inputs = 0,
     .group = KindGroup::ends,
     .type = type_of_input,
     .onnx = input_onnx,
     .is_stored = true},
    {.kind = Kind::learned,
     .name = "learned",
     .inputs = 0,
     .group = KindGroup::ends,
     .type = type_of_learned,
     .onnx = learned_onnx,
     .text = learned_text,
     .parameters = learned_parameters},
    {.kind = Kind::constant,
     .name = "constant",
     .inputs = 0,
     .group = KindGroup::ends,
     .type = type_of_constant,
     .onnx = constant_onnx,
     .text = constant_text},
};

}  // namespace

std::span<const LayerKind> input_kinds() {
    return kInputKinds;
}

}  // namespace stipple::network
