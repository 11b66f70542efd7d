// Where a network begins.

#include <algorithm>

#include "stipple/network/kinds/kind.h"

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

constexpr LayerKind kInputKinds[] = {
    {.kind = Kind::input,
     .name = "input",
     .inputs = 0,
     .group = KindGroup::ends,
     .type = type_of_input,
     .onnx = input_onnx,
     .is_stored = true},
};

}  // namespace

std::span<const LayerKind> input_kinds() {
    return kInputKinds;
}

}  // namespace stipple::network
