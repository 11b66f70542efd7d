// Numbers made of numbers at the same place, of the rows of a point or of the channels of a row.

#include <cmath>

#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
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

/// The step has no parameters: those become part of what follows.
Form lower_layer_norm(NetworkReader& reader, const Layer& layer) {
    lowering::Node node = lowering::make_node(lowering::NodeKind::step, layer.name, layer.type);
    node.step = StepKind::layer_norm;
    node.inputs = {{reader.rows(layer, 0)}};
    node.factor = layer.options.norm_eps;
    const Form normal = reader.graph.form_of(reader.graph.add(std::move(node)));
    const std::vector<float>& weight = reader.weights.tensors.at(layer.parameters + ".weight").values;
    const std::vector<float>& bias = reader.weights.tensors.at(layer.parameters + ".bias").values;
    lowering::Map map = identity(layer.type.channels);
    map.values.assign(weight.begin(), weight.end());
    Form out = apply(map, normal);
    for (size_t c = 0; c < bias.size(); ++c) out.bias[c] += bias[c];
    return out;
}

Form lower_add(NetworkReader& reader, const Layer& layer) {
    return sum(reader.form(layer, 0), reader.form(layer, 1));
}

Form lower_subtract(NetworkReader& reader, const Layer& layer) {
    return sum(reader.form(layer, 0), apply(scaled(identity(layer.type.channels), -1), reader.form(layer, 1)));
}

Form lower_scale(NetworkReader& reader, const Layer& layer) {
    return apply(scaled(identity(layer.type.channels), layer.options.factor), reader.form(layer, 0));
}

/// What all rows of a cloud or of a point share is read from there.
Form lower_multiply(NetworkReader& reader, const Layer& layer) {
    // By the same numbers everywhere: part of what comes before or after.
    for (size_t i = 0; i < 2; ++i) {
        if (!reader.form(layer, i).terms.empty()) continue;
        lowering::Map map = identity(layer.type.channels);
        map.values = reader.form(layer, i).bias;
        return apply(map, reader.form(layer, 1 - i));
    }
    Link shared = reader.graph.link_of(reader.network[layer.inputs[1]].name, reader.form(layer, 1));
    if (shared.access == Access::neighbour) shared = {reader.rows(layer, 1)};
    return reader.step(layer, StepKind::multiply, {{reader.rows(layer, 0)}, shared});
}

// === Steps

void check_softmax_rows(const ProgramCheck& check, const Step& step) {
    check.expect(step, check.only_points(step));
}

void run_softmax_rows(const Piece& piece) {
    cpu::softmax_rows(piece.input(0), piece.width, piece.channels(0), piece.out(), piece.begin, piece.end);
}

void check_log_softmax(const ProgramCheck& check, const Step& step) {
    check.expect(step, check.only_numbers(step));
}

void run_log_softmax(const Piece& piece) {
    cpu::log_softmax(piece.input(0), piece.out_channels(), piece.out(), piece.begin, piece.end);
}

void check_layer_norm(const ProgramCheck& check, const Step& step) {
    check.require(step.factor > 0, "adds nothing to the variance");
    check.expect(step, check.only_numbers(step));
}

void run_layer_norm(const Piece& piece) {
    const cpu::RowSource x = piece.input(0);
    const cpu::Rows out = piece.out();
    const int64_t channels = piece.out_channels();
    for (int64_t r = piece.begin; r < piece.end; ++r) {
        const float* from = x.row(r);
        float* to = out.row(r);
        double sum = 0, squares = 0;
        for (int64_t c = 0; c < channels; ++c) sum += from[c];
        const double mean = sum / static_cast<double>(channels);
        for (int64_t c = 0; c < channels; ++c) squares += (from[c] - mean) * (from[c] - mean);
        const double scale = 1 / std::sqrt(squares / static_cast<double>(channels) + piece.step.factor);
        for (int64_t c = 0; c < channels; ++c) to[c] = static_cast<float>((from[c] - mean) * scale);
    }
}

void check_equal_inputs(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 2);
    check.require(check.numbers(step, 0) == check.numbers(step, 1), "its inputs differ in type");
    check.expect(step, check.numbers(step, 0));
}

void run_add(const Piece& piece) {
    cpu::add(piece.input(0), piece.input(1), piece.step.factor, piece.out_channels(), piece.out(), piece.begin,
             piece.end);
}

void check_multiply(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 2);
    const TensorType& x = check.numbers(step, 0);
    check.require(step.inputs[1].access != Access::neighbour, "reads neighbours");
    check.require(check.number_source(step.inputs[1], ProgramCheck::rows_of(x)).channels == x.channels,
                  "its inputs differ in channels");
    check.expect(step, x);
}

void run_multiply(const Piece& piece) {
    const cpu::RowSource x = piece.input(0), y = piece.input(1);
    const cpu::Rows out = piece.out();
    const int64_t channels = piece.out_channels();
    for (int64_t r = piece.begin; r < piece.end; ++r) {
        const float *a = x.row(r), *b = y.row(r);
        float* to = out.row(r);
        for (int64_t c = 0; c < channels; ++c) to[c] = a[c] * b[c];
    }
}

constexpr lowering::LayerLowering kArithmeticLayers[] = {
    {Kind::softmax_rows, lower_to_step<StepKind::softmax_rows>},
    {Kind::log_softmax, lower_to_step<StepKind::log_softmax>},
    {Kind::layer_norm, lower_layer_norm},
    {Kind::add, lower_add},
    {Kind::subtract, lower_subtract},
    {Kind::multiply, lower_multiply},
    {Kind::scale, lower_scale},
};
constexpr StepType kArithmeticSteps[] = {
    {.kind = StepKind::softmax_rows,
     .name = "softmax_rows",
     .check = check_softmax_rows,
     .cut = cpu::Cut::points,
     .run = run_softmax_rows},
    {.kind = StepKind::log_softmax, .name = "log_softmax", .check = check_log_softmax, .run = run_log_softmax},
    {.kind = StepKind::layer_norm, .name = "layer_norm", .check = check_layer_norm, .run = run_layer_norm},
    {.kind = StepKind::add, .name = "add", .check = check_equal_inputs, .run = run_add},
    {.kind = StepKind::multiply, .name = "multiply", .check = check_multiply, .run = run_multiply},
};

}  // namespace

KindGroup arithmetic_group() {
    return {kArithmeticLayers, kArithmeticSteps};
}

}  // namespace stipple::engine
