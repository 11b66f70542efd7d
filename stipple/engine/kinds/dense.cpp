// Inputs, linear layers and activations: what chains are made of.

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/reader.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {
namespace {

using lowering::Form;
using lowering::NetworkReader;
using network::Kind;
using network::Layer;

// === Layers

Form lower_input(NetworkReader& reader, const Layer& layer) {
    STIPPLE_REQUIRE(!layer.type.is_index, "input '{}' is indices: the engine takes numbers", layer.name);
    return reader.graph.form_of(
        reader.graph.add(lowering::make_node(lowering::NodeKind::input, layer.name, layer.type)));
}

/// Becomes part of what reads it; a step only where rows of it are wanted.
Form lower_learned(NetworkReader& reader, const Layer& layer) {
    const std::vector<float>& value = reader.weights.tensors.at(layer.parameters + ".value").values;
    return {layer.type, {}, {value.begin(), value.end()}};
}

Form lower_constant(NetworkReader&, const Layer& layer) {
    const std::vector<float>& values = layer.options.values;
    return {layer.type, {}, {values.begin(), values.end()}};
}

Form activated(NetworkReader& reader, const Layer& layer, const Form& x) {
    const Activation& activation = layer.options.activation;
    if (is_of_chains(activation)) return reader.graph.dense(layer.name, x, activation);
    // Where x has fewest rows, as a dense layer would be.
    const lowering::Link link = reader.graph.link_of(layer.name, x);
    lowering::Node node = lowering::make_node(lowering::NodeKind::step,
                                              fmt::format("{}/{}", layer.name, network::name_of(activation.kind)),
                                              reader.graph[link.node].type);
    node.step = StepKind::activation;
    node.inputs = {{link.node}};
    node.activation = activation;
    Form out = reader.graph.form_of(reader.graph.add(std::move(node)));
    out.terms[0].link.access = link.access;
    out.terms[0].link.indices = link.indices;
    out.type = x.type;
    return out;
}

Form lower_linear(NetworkReader& reader, const Layer& layer) {
    return activated(reader, layer, reader.affine(layer));
}

Form lower_activation(NetworkReader& reader, const Layer& layer) {
    return activated(reader, layer, reader.form(layer, 0));
}

Form lower_dropout(NetworkReader& reader, const Layer& layer) {
    return reader.form(layer, 0);
}

// === chain

void check_layer(const ProgramCheck& check, const Step& step, size_t position) {
    const Dense& layer = step.layers[position];
    const ProgramCheck::Rows rows{step.level, step.width, step.level == Level::point ? step.set : 0};
    const std::string name = ProgramCheck::short_name(layer.name);
    if (layer.name.size() > kMaxName) check.fail("a layer's name of {} characters", layer.name.size());
    if (layer.in < 0 || layer.in > kMaxExtent || layer.out < 1 || layer.out > kMaxExtent)
        check.fail("layer '{}' is {} x {}", name, layer.out, layer.in);
    int64_t in = 0;
    if (position == 0) {
        for (const Source& part : layer.parts) {
            check.require(part.access == Access::row, "a part is not read row by row");
            in += check.number_source(part, rows).channels;
        }
        check.require(in > 0 || !layer.addends.empty(), "its first layer reads nothing");
    } else {
        check.require(layer.parts.empty() && layer.addends.empty(), "a layer that is not the first names its input");
        in = step.layers[position - 1].out;
    }
    if (in != layer.in) check.fail("layer '{}' takes {} channels and gets {}", name, layer.in, in);
    for (const Source& addend : layer.addends)
        check.require(check.number_source(addend, rows).channels == layer.out,
                      "an addend has other channels than its layer");
    if (layer.matrix != -1) {
        const TensorType& matrix = check.type(layer.matrix);
        check.require(matrix.level == Level::cloud && matrix.channels == layer.in * layer.out && layer.in > 0,
                      "a layer's matrix has another size than the layer");
        check.require(layer.weight.empty() && layer.parts.size() <= 1,
                      "a layer with a matrix has a weight or parts too");
    } else if (static_cast<int64_t>(layer.weight.size()) != layer.in * layer.out) {
        check.fail("layer '{}' is {} x {} and has {} weights", name, layer.out, layer.in, layer.weight.size());
    }
    if (static_cast<int64_t>(layer.bias.size()) != layer.out)
        check.fail("layer '{}' has {} outputs and {} biases", name, layer.out, layer.bias.size());
    check.finite(layer.weight);
    check.finite(layer.bias);
    check.activation(layer.activation);
    check.require(is_of_chains(layer.activation), "an activation that chains do not have");
    const bool scaled = layer.precision == Precision::int8 || layer.precision == Precision::fp8;
    check.require(std::isfinite(layer.input_range) && layer.input_range >= 0, "a range is out of range");
    check.require(!scaled || layer.input_range > 0, "a layer of int8 or fp8 has no range");
}

void check_chain(const ProgramCheck& check, const Step& step) {
    check.require(!step.layers.empty() && step.inputs.empty(), "a chain without layers, or with inputs of its own");
    check.require(step.width >= 1 && step.width <= kMaxExtent && (step.level == Level::point || step.width == 1),
                  "a chain's rows are out of range");
    for (size_t i = 0; i < step.layers.size(); ++i) check_layer(check, step, i);
    const int64_t channels = step.layers.back().out;
    check.require(step.reduce == Reduce::none || step.level == Level::point, "takes the maximum over points of clouds");
    switch (step.reduce) {
        case Reduce::none: check.expect(step, check.tensor({step.level, step.width, step.set}, channels)); break;
        case Reduce::max_points: check.expect(step, network::clouds_of(channels)); break;
        case Reduce::max_rows: check.expect(step, check.tensor({Level::point, 1, step.set}, channels)); break;
    }
}

// === activation

void check_activation(const ProgramCheck& check, const Step& step) {
    check.expect(step, check.only_numbers(step));
}

void run_activation(const cpu::Piece& piece) {
    cpu::activate(piece.input(0), piece.out_channels(), piece.step.activation, piece.out(), piece.begin, piece.end);
}

// === constant

void check_constant(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 0);
    check.require(!step.weight.empty(), "has no numbers");
    check.finite(step.weight);
    check.expect(step, network::clouds_of(static_cast<int64_t>(step.weight.size())));
}

void run_constant(const cpu::Piece& piece) {
    std::copy(piece.step.weight.begin(), piece.step.weight.end(), piece.out().data);
}

constexpr lowering::LayerLowering kDenseLayers[] = {
    {Kind::input, lower_input},           {Kind::learned, lower_learned}, {Kind::linear, lower_linear},
    {Kind::activation, lower_activation}, {Kind::dropout, lower_dropout}, {Kind::constant, lower_constant},
};
constexpr StepType kDenseSteps[] = {
    {.kind = StepKind::chain, .name = "chain", .check = check_chain, .cut = cpu::Cut::own},
    {.kind = StepKind::activation, .name = "activation", .check = check_activation, .run = run_activation},
    {.kind = StepKind::constant,
     .name = "constant",
     .check = check_constant,
     .cut = cpu::Cut::cloud,
     .run = run_constant,
     .has_weight = true},
};

}  // namespace

KindGroup dense_group() {
    return {kDenseLayers, kDenseSteps};
}

}  // namespace stipple::engine
