#include "stipple/network/network.h"

#include <algorithm>
#include <map>
#include <set>

#include "stipple/core/checked.h"
#include "stipple/core/view.h"
#include "stipple/network/kinds/kind.h"

namespace stipple::network {

std::string to_string(const TensorType& type) {
    if (type.level == Level::cloud) return fmt::format("[B, {}]", type.channels);
    const std::string n = type.points > 0 ? fmt::format("{}", type.points)
                          : type.set == 0 ? std::string("N")
                                          : fmt::format("N{}", type.set);
    if (type.is_index)
        return fmt::format("[B, {}, {}] int32{}", n, type.width,
                           type.of == type.set ? "" : fmt::format(" of set {}", type.of));
    if (type.width == 1) return fmt::format("[B, {}, {}]", n, type.channels);
    return fmt::format("[B, {}, {}, {}]", n, type.width, type.channels);
}

std::string label_of(const Layer& layer) {
    return fmt::format("{} '{}'", name_of(layer.kind), layer.name);
}

// === Parameters

namespace {

bool has_own_parameters(const Layer& layer) {
    const LayerKind& kind = kind_of(layer);
    return kind.parameters && kind.owns_parameters;
}

}  // namespace

const Layer* owner_of(const Network& network, const std::string& parameters) {
    for (const Layer& layer : network.layers)
        if (layer.name == parameters)
            return layer.parameters == layer.name && has_own_parameters(layer) ? &layer : nullptr;
    return nullptr;
}

std::vector<Parameter> parameters_of(const Network& network, const Layer& layer) {
    const LayerKind& kind = kind_of(layer);
    return kind.parameters ? kind.parameters(network, layer) : std::vector<Parameter>();
}

std::vector<Parameter> parameters_of(const Network& network) {
    std::vector<Parameter> all;
    std::set<std::string> names;
    for (const Layer& layer : network.layers)
        for (Parameter& parameter : parameters_of(network, layer))
            if (names.insert(parameter.name).second) all.push_back(std::move(parameter));
    return all;
}

// === Validation

void check_name(const std::string& owner, const std::string& name) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    };
    STIPPLE_REQUIRE(!name.empty() && std::all_of(name.begin(), name.end(), is_allowed),
                    "{}: a name is made of a-z, 0-9, '_', '.' and '-', not '{}'", owner, name);
}

namespace {

// A layer with parameters of its own, or all those of a layer of its kind before it.
void check_sharing(const Network& network, size_t position, const Layer& layer) {
    if (!has_own_parameters(layer)) {
        STIPPLE_REQUIRE(kind_of(layer).parameters || layer.parameters == layer.name,
                        "{}: has no parameters to share with '{}'", label_of(layer), layer.parameters);
        return;
    }
    if (layer.parameters == layer.name) return;
    const Layer* owner = owner_of(network, layer.parameters);
    STIPPLE_REQUIRE(owner && static_cast<size_t>(owner - network.layers.data()) < position,
                    "{}: no layer before it has the parameters '{}'", label_of(layer), layer.parameters);
    STIPPLE_REQUIRE(owner->kind == layer.kind, "{}: cannot share the parameters of {}", label_of(layer),
                    label_of(*owner));
    const std::vector<Parameter> mine = parameters_of(network, layer), theirs = parameters_of(network, *owner);
    for (const Parameter& parameter : theirs) {
        const auto same =
            std::find_if(mine.begin(), mine.end(), [&](const Parameter& p) { return p.name == parameter.name; });
        STIPPLE_REQUIRE(same != mine.end(), "{}: shares the parameters of {} but not '{}'", label_of(layer),
                        label_of(*owner), parameter.name);
        STIPPLE_REQUIRE(same->shape == parameter.shape, "{}: needs '{}' of shape {}, {} has {}", label_of(layer),
                        parameter.name, shape_text(same->shape.data(), static_cast<int>(same->shape.size())),
                        label_of(*owner), shape_text(parameter.shape.data(), static_cast<int>(parameter.shape.size())));
    }
    for (const Parameter& parameter : mine)
        STIPPLE_REQUIRE(
            std::any_of(theirs.begin(), theirs.end(), [&](const Parameter& p) { return p.name == parameter.name; }),
            "{}: needs '{}', which {} has not", label_of(layer), parameter.name, label_of(*owner));
}

// Two prefixes may still make one name: 'a' with a norm, and 'a.norm'.
void check_parameter_names(const Network& network) {
    std::map<std::string, std::pair<std::string, std::string>> seen;  // name: prefix, layer
    for (const Layer& layer : network.layers)
        for (const Parameter& parameter : parameters_of(network, layer)) {
            const auto [at, is_new] = seen.insert({parameter.name, {layer.parameters, layer.name}});
            STIPPLE_REQUIRE(is_new || at->second.first == layer.parameters,
                            "{}: its parameter '{}' is also one of '{}'", label_of(layer), parameter.name,
                            at->second.second);
        }
}

}  // namespace

TensorType check_layer(const Network& network, size_t position, const Layer& layer) {
    check_name(label_of(layer), layer.name);
    for (size_t i = 0; i < position; ++i)
        STIPPLE_REQUIRE(network.layers[i].name != layer.name, "{}: {} has the same name", label_of(layer),
                        label_of(network.layers[i]));
    for (Tensor tensor : layer.inputs)
        STIPPLE_REQUIRE(tensor >= 0 && static_cast<size_t>(tensor) < position,
                        "{}: needs layers before it as inputs, got number {} at position {}", label_of(layer), tensor,
                        position);
    const TensorType type = infer_type(network, layer);
    check_sharing(network, position, layer);
    return type;
}

void validate(const Network& network) {
    check_name("network", network.name);
    bool has_input = false;
    for (size_t i = 0; i < network.layers.size(); ++i) {
        const Layer& layer = network.layers[i];
        const TensorType type = check_layer(network, i, layer);
        STIPPLE_REQUIRE(layer.type == type, "{}: its type is written as {}, it is {}", label_of(layer),
                        to_string(layer.type), to_string(type));
        has_input |= layer.kind == Kind::input;
    }
    check_parameter_names(network);
    STIPPLE_REQUIRE(has_input, "network '{}': has no input", network.name);
    STIPPLE_REQUIRE(!network.outputs.empty(), "network '{}': has no output", network.name);
    std::set<std::string> names;
    for (const Output& output : network.outputs) {
        check_name("output", output.name);
        STIPPLE_REQUIRE(names.insert(output.name).second, "output '{}': is there twice", output.name);
        STIPPLE_REQUIRE(output.tensor >= 0 && static_cast<size_t>(output.tensor) < network.layers.size(),
                        "output '{}': is layer {} of {}", output.name, output.tensor, network.layers.size());
    }
}

// === Cost

int64_t multiply_adds(const Network& network, int64_t n) {
    STIPPLE_REQUIRE(n >= 0, "multiply_adds: a cloud of {} points", n);
    int64_t sum = 0;
    for (const Layer& layer : network.layers) {
        const LayerKind& kind = kind_of(layer);
        if (!kind.multiply_adds) continue;
        const int64_t points = layer.type.points > 0 ? layer.type.points : n;
        const int64_t rows = layer.type.level == Level::cloud ? 1 : checked_mul(points, layer.type.width);
        sum = checked_add(sum, checked_mul(rows, kind.multiply_adds(network, layer, n)));
    }
    return sum;
}

}  // namespace stipple::network
