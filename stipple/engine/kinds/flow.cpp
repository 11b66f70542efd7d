// Flows. actnorm, mix and couple are linear: they become part of the chains beside them.

#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/parameters.h"
#include "stipple/engine/lower/reader.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {
namespace {

using cpu::Piece;
using lowering::Form;
using lowering::identity;
using lowering::Link;
using lowering::lower_to_step;
using lowering::NetworkReader;
using network::Kind;
using network::Layer;

// === Layers

Form lower_affine(NetworkReader& reader, const Layer& layer) {
    return reader.affine(layer);
}

Form lower_couple(NetworkReader& reader, const Layer& layer) {
    const Form& x = reader.form(layer, 0);
    const Form t = placed(reader.form(layer, 1), layer.options.begin, x.type.channels);
    const double sign = layer.options.inverse ? 1 : -1;
    return sum(x, apply(scaled(identity(x.type.channels), sign), t));
}

Form lower_inject(NetworkReader& reader, const Layer& layer) {
    std::vector<Link> inputs{{reader.rows(layer, 0)}};
    for (size_t i = 1; i < 3; ++i) {
        Link link = reader.graph.link_of(reader.network[layer.inputs[i]].name, reader.form(layer, i));
        if (link.access == Access::neighbour) link = {reader.rows(layer, i)};
        inputs.push_back(link);
    }
    return reader.step(layer, StepKind::inject, std::move(inputs));
}

/// The number of points, times what each contributes: sums of them are one.
Form lower_flow_log_det(NetworkReader& reader, const Layer& layer) {
    lowering::Node node = lowering::make_node(lowering::NodeKind::step, layer.name, layer.type);
    node.step = StepKind::log_det;
    node.set = reader.form(layer, 0).type.set;
    const Form points = reader.graph.form_of(reader.graph.add(std::move(node)));
    return apply(scaled(identity(1), lowering::log_det_of(layer, reader.weights)), points);
}

// === Steps

void check_couple(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 2);
    const TensorType &x = check.numbers(step, 0), &t = check.numbers(step, 1);
    check.require(ProgramCheck::rows_of(x) == ProgramCheck::rows_of(t) && 0 <= step.begin && step.begin < x.channels &&
                      t.channels == x.channels - step.begin,
                  "its inputs do not fit its channels");
    check.expect(step, x);
}

void run_couple(const Piece& piece) {
    cpu::couple(piece.input(0), piece.input(1), piece.step.factor, piece.step.begin, piece.out_channels(), piece.out(),
                piece.begin, piece.end);
}

void check_inject(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 3);
    const TensorType& x = check.numbers(step, 0);
    for (size_t i = 1; i < 3; ++i) {
        check.require(step.inputs[i].access != Access::neighbour, "reads neighbours");
        check.require(check.number_source(step.inputs[i], ProgramCheck::rows_of(x)).channels == x.channels,
                      "its inputs differ in channels");
    }
    check.expect(step, x);
}

void run_inject(const Piece& piece) {
    cpu::inject(piece.input(0), piece.input(1), piece.input(2), piece.step.inverse, piece.out_channels(), piece.out(),
                piece.begin, piece.end);
}

void check_log_det(const ProgramCheck& check, const Step& step) {
    for (size_t i = 0; i < step.inputs.size(); ++i) check.input(step, i);
    check.expect(step, network::clouds_of(1));
}

void run_log_det(const Piece& piece) {
    *piece.out().data =
        static_cast<float>(static_cast<double>(piece.step.factor) * static_cast<double>(piece.points()));
}

void check_gaussian_log_density(const ProgramCheck& check, const Step& step) {
    check.require(check.only_points(step).set == step.set, "reads points of another set than its own");
    check.expect(step, network::clouds_of(1));
}

void run_gaussian_log_density(const Piece& piece) {
    *piece.out().data = cpu::gaussian_log_density(piece.input(0), piece.rows(0), piece.channels(0));
}

constexpr lowering::LayerLowering kFlowLayers[] = {
    {Kind::actnorm, lower_affine},
    {Kind::mix, lower_affine},
    {Kind::couple, lower_couple},
    {Kind::inject, lower_inject},
    {Kind::flow_log_det, lower_flow_log_det},
    {Kind::gaussian_log_density, lower_to_step<StepKind::gaussian_log_density>},
};
constexpr StepType kFlowSteps[] = {
    {.kind = StepKind::couple, .name = "couple", .check = check_couple, .run = run_couple},
    {.kind = StepKind::inject, .name = "inject", .check = check_inject, .run = run_inject},
    {.kind = StepKind::log_det, .name = "log_det", .check = check_log_det, .cut = cpu::Cut::cloud, .run = run_log_det},
    {.kind = StepKind::gaussian_log_density,
     .name = "gaussian_log_density",
     .check = check_gaussian_log_density,
     .cut = cpu::Cut::cloud,
     .run = run_gaussian_log_density},
};

}  // namespace

KindGroup flow_group() {
    return {kFlowLayers, kFlowSteps};
}

}  // namespace stipple::engine
