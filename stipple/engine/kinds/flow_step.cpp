// Flow steps that hold a small network: one step of the program each.

#include "stipple/engine/cpu/flow_step.h"

#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/reader.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {
namespace {

using lowering::Form;
using lowering::Link;
using lowering::NetworkReader;
using network::Kind;
using network::Layer;

/// The condition of a point serves all its rows. With a log-determinant it is two steps, so that who does not ask for
/// likelihoods does not pay for derivatives: they cost three times what the rest does.
Form lower_flow_step(NetworkReader& reader, const Layer& layer) {
    lowering::Node node = lowering::make_node(lowering::NodeKind::step, layer.name, layer.type);
    node.step = StepKind::flow_step;
    Link condition = reader.graph.link_of(reader.network[layer.inputs[1]].name, reader.form(layer, 1));
    if (condition.access == Access::neighbour) condition = {reader.rows(layer, 1)};
    node.inputs = {{reader.rows(layer, 0)}, condition};
    for (const network::Parameter& parameter : network::parameters_of(reader.network, layer)) {
        const std::vector<float>& values = reader.weights.tensors.at(parameter.name).values;
        node.weight.insert(node.weight.end(), values.begin(), values.end());
    }
    node.begin = layer.options.channels;
    node.end = layer.options.steps;
    node.inverse = layer.options.inverse;
    node.activation = layer.options.activation;
    if (!layer.options.log_det || layer.options.inverse) return reader.graph.form_of(reader.graph.add(std::move(node)));
    const int64_t c = layer.type.channels - 1;
    lowering::Node moved = node;
    moved.type.channels = c;
    node.name += "/log_det";
    std::vector<int64_t> last(static_cast<size_t>(c + 1), -1);
    last.back() = c;
    const Form log_det =
        apply(lowering::selection(c + 1, last), reader.graph.form_of(reader.graph.add(std::move(node))));
    return sum(placed(reader.graph.form_of(reader.graph.add(std::move(moved))), 0, c + 1), log_det);
}

// As the layer has it: a file must not keep an engine busy for ever.
constexpr int64_t kMostSteps = 1000;

void check_flow_step(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 2);
    TensorType type = check.numbers(step, 0);
    const int64_t c = type.channels, h = step.begin;
    check.require(c <= network::kMostFlowChannels && h >= 1 && h <= network::kMostFlowHidden && step.end >= 0 &&
                      step.end <= kMostSteps,
                  "its channels or steps are out of range");
    check.require(step.activation.kind == ActivationKind::tanh || step.activation.kind == ActivationKind::swish,
                  "its activation is neither tanh nor swish");
    check.require(step.inputs[1].access != Access::neighbour, "reads neighbours");
    const int64_t parts = network::flow_condition_channels(c, h);
    check.require(check.number_source(step.inputs[1], ProgramCheck::rows_of(type)).channels == parts,
                  "its condition does not fit its channels");
    check.require(static_cast<int64_t>(step.weight.size()) == h * (2 * c + h) + (step.end > 0 ? parts : 0),
                  "its weight does not fit its channels");
    check.finite(step.weight);
    if (check.output(step).channels == c + 1) type.channels = c + 1;
    check.expect(step, type);
}

void run_flow_step(const cpu::Piece& piece) {
    const Step& step = piece.step;
    cpu::flow_step({.weight = step.weight.data(),
                    .channels = piece.channels(0),
                    .hidden = step.begin,
                    .steps = step.end,
                    .activation = step.activation,
                    .inverse = step.inverse,
                    .log_det = piece.out_channels() > piece.channels(0)},
                   piece.input(0), piece.input(1), piece.out(), piece.begin, piece.end);
}

constexpr lowering::LayerLowering kFlowStepLayers[] = {{Kind::flow_step, lower_flow_step}};
constexpr StepType kFlowStepSteps[] = {{.kind = StepKind::flow_step,
                                        .name = "flow_step",
                                        .check = check_flow_step,
                                        .run = run_flow_step,
                                        .has_weight = true}};

}  // namespace

KindGroup flow_step_group() {
    return {kFlowStepLayers, kFlowStepSteps};
}

}  // namespace stipple::engine
