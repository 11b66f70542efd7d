// Maxima and sums. A maximum at the end of a chain is part of it (lower/chains.cpp).

#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/reader.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {
namespace {

using cpu::Piece;
using lowering::lower_to_step;
using network::Kind;

void check_points(const ProgramCheck& check, const Step& step) {
    const TensorType& x = check.only_points(step);
    check.require(x.set == step.set, "reads points of another set than its own");
    check.expect(step, network::clouds_of(x.channels));
}

void check_max_rows(const ProgramCheck& check, const Step& step) {
    const TensorType& x = check.only_points(step);
    check.expect(step, network::rows_of(x, 1, x.channels));
}

void check_sum_channels(const ProgramCheck& check, const Step& step) {
    const TensorType& x = check.only_numbers(step);
    check.expect(step, network::rows_of(x, x.width, 1));
}

void run_max_points(const Piece& piece) {
    cpu::max_points(piece.input(0), piece.rows(0), piece.out().data, piece.begin, piece.end);
}

void run_sum_points(const Piece& piece) {
    cpu::sum_points(piece.input(0), piece.rows(0), piece.out().data, piece.begin, piece.end);
}

void run_max_rows(const Piece& piece) {
    cpu::max_rows(piece.input(0), piece.width, piece.channels(0), piece.out(), piece.begin, piece.end);
}

void run_sum_channels(const Piece& piece) {
    cpu::sum_channels(piece.input(0), piece.channels(0), piece.out(), piece.begin, piece.end);
}

constexpr lowering::LayerLowering kReductionLayers[] = {
    {Kind::max_points, lower_to_step<StepKind::max_points>},
    {Kind::sum_points, lower_to_step<StepKind::sum_points>},
    {Kind::max_rows, lower_to_step<StepKind::max_rows>},
    {Kind::sum_channels, lower_to_step<StepKind::sum_channels>},
};
constexpr StepType kReductionSteps[] = {
    {.kind = StepKind::max_points,
     .name = "max_points",
     .check = check_points,
     .cut = cpu::Cut::channels,
     .run = run_max_points},
    {.kind = StepKind::sum_points,
     .name = "sum_points",
     .check = check_points,
     .cut = cpu::Cut::channels,
     .run = run_sum_points},
    {.kind = StepKind::max_rows,
     .name = "max_rows",
     .check = check_max_rows,
     .cut = cpu::Cut::points,
     .run = run_max_rows},
    {.kind = StepKind::sum_channels, .name = "sum_channels", .check = check_sum_channels, .run = run_sum_channels},
};

}  // namespace

KindGroup reduction_group() {
    return {kReductionLayers, kReductionSteps};
}

}  // namespace stipple::engine
