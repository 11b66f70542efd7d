// Numbers made of numbers at the same place, of the rows of a point or of the channels of a row.

#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/reader.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {
namespace {

using cpu::Piece;
using lowering::Form;
using lowering::identity;
using lowering::lower_to_step;
using lowering::NetworkReader;
using network::Kind;
using network::Layer;

// === Layers

Form lower_add(NetworkReader& reader, const Layer& layer) {
    return sum(reader.form(layer, 0), reader.form(layer, 1));
}

Form lower_subtract(NetworkReader& reader, const Layer& layer) {
    return sum(reader.form(layer, 0), apply(scaled(identity(layer.type.channels), -1), reader.form(layer, 1)));
}

Form lower_scale(NetworkReader& reader, const Layer& layer) {
    return apply(scaled(identity(layer.type.channels), layer.options.factor), reader.form(layer, 0));
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

void check_equal_inputs(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 2);
    check.require(check.numbers(step, 0) == check.numbers(step, 1), "its inputs differ in type");
    check.expect(step, check.numbers(step, 0));
}

void run_add(const Piece& piece) {
    cpu::add(piece.input(0), piece.input(1), piece.step.factor, piece.out_channels(), piece.out(), piece.begin,
             piece.end);
}

constexpr lowering::LayerLowering kArithmeticLayers[] = {
    {Kind::softmax_rows, lower_to_step<StepKind::softmax_rows>},
    {Kind::log_softmax, lower_to_step<StepKind::log_softmax>},
    {Kind::add, lower_add},
    {Kind::subtract, lower_subtract},
    {Kind::scale, lower_scale},
};
constexpr StepType kArithmeticSteps[] = {
    {.kind = StepKind::softmax_rows,
     .name = "softmax_rows",
     .check = check_softmax_rows,
     .cut = cpu::Cut::points,
     .run = run_softmax_rows},
    {.kind = StepKind::log_softmax, .name = "log_softmax", .check = check_log_softmax, .run = run_log_softmax},
    {.kind = StepKind::add, .name = "add", .check = check_equal_inputs, .run = run_add},
};

}  // namespace

KindGroup arithmetic_group() {
    return {kArithmeticLayers, kArithmeticSteps};
}

}  // namespace stipple::engine
