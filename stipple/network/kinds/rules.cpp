#include "stipple/network/kinds/kind.h"

namespace stipple::network {
namespace {

// Far above any use; products of two of them fit in 64 bits.
constexpr int64_t kMaxExtent = int64_t{1} << 24;

}  // namespace

Rules::Rules(const Network& network_of, const Layer& layer_of) : network(network_of), layer(layer_of) {
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
        const Tensor tensor = layer.inputs[i];
        if (tensor < 0 || static_cast<size_t>(tensor) >= network.layers.size())
            fail("input {} is layer {} of {}", i, tensor, network.layers.size());
        inputs_.push_back(&network[tensor]);
    }
}

void Rules::need_inputs(size_t count) const {
    if (inputs_.size() != count) fail("needs {} input{}, got {}", count, count == 1 ? "" : "s", inputs_.size());
}

std::string Rules::got(size_t i) const {
    return fmt::format("'{}' is {}", inputs_[i]->name, to_string(inputs_[i]->type));
}

const TensorType& Rules::numbers(size_t i) const {
    if (type(i).is_index) fail("needs numbers, {}", got(i));
    return type(i);
}

const TensorType& Rules::rows(size_t i) const {
    if (numbers(i).level != Level::point) fail("needs rows of points [B, N, c], {}", got(i));
    return type(i);
}

const TensorType& Rules::points(size_t i) const {
    if (rows(i).width != 1) fail("needs one row a point [B, N, c], {}", got(i));
    return type(i);
}

const TensorType& Rules::clouds(size_t i) const {
    if (numbers(i).level != Level::cloud) fail("needs one row a cloud [B, c], {}", got(i));
    return type(i);
}

const TensorType& Rules::indices(size_t i) const {
    if (!type(i).is_index) fail("needs indices [B, N, k] int32, {}", got(i));
    return type(i);
}

void Rules::same_rows(size_t a, size_t b) const {
    if (numbers(a).level != numbers(b).level || type(a).width != type(b).width || type(a).set != type(b).set)
        fail("needs inputs with the same rows, {} and {}", got(a), got(b));
}

void Rules::same_types(size_t a, size_t b) const {
    if (numbers(a) != numbers(b)) fail("needs inputs of one type, {} and {}", got(a), got(b));
}

const Layer* Rules::layer_of_set(int32_t set) const {
    for (const Layer& other : network.layers) {
        if (&other == &layer) break;
        if (other.type.level == Level::point && other.type.set == set) return &other;
    }
    return nullptr;
}

void Rules::extent(const char* what, int64_t value) const {
    if (value < 1 || value > kMaxExtent) fail("{} is {}, must be 1 to {}", what, value, kMaxExtent);
}

TensorType infer_type(const Network& network, const Layer& layer) {
    const Rules rules(network, layer);
    const LayerKind* kind = find_kind(layer.kind);
    if (!kind) rules.fail("unknown kind {}", static_cast<int>(layer.kind));
    if (kind->inputs == kAnyInputs) {
        if (layer.inputs.empty()) rules.fail("needs at least one input");
    } else if (kind->inputs == kOneOrTwoInputs) {
        if (layer.inputs.size() != 2) rules.need_inputs(1);
    } else {
        rules.need_inputs(static_cast<size_t>(kind->inputs));
    }
    const TensorType type = kind->type(rules);
    rules.extent("channels of the output", type.channels);
    rules.extent("rows of a point", type.width);
    return type;
}

int64_t input_channels(const Network& network, const Layer& layer) {
    STIPPLE_REQUIRE(layer.inputs.size() == 1 && layer.inputs[0] >= 0 &&
                        static_cast<size_t>(layer.inputs[0]) < network.layers.size(),
                    "{}: needs 1 input", label_of(layer));
    return network[layer.inputs[0]].type.channels;
}

TensorType with_channels(TensorType type, int64_t channels) {
    type.channels = channels;
    return type;
}

TensorType type_of_numbers(const Rules& rules) {
    return rules.numbers(0);
}

TensorType type_of_equal_inputs(const Rules& rules) {
    rules.same_types(0, 1);
    return rules.type(0);
}

}  // namespace stipple::network
