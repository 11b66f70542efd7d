// Numbers moved or repeated. As layers all of them are forms, which cost nothing; what could not be avoided becomes a
// step (lower/moves.cpp).

#include <algorithm>
#include <numeric>

#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/reader.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {
namespace {

using cpu::Piece;
using lowering::Form;
using lowering::NetworkReader;
using network::Kind;
using network::Layer;

// === Layers

Form lower_concat(NetworkReader& reader, const Layer& layer) {
    Form out{layer.type, {}, std::vector<double>(static_cast<size_t>(layer.type.channels), 0.0)};
    int64_t at = 0;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
        out = sum(std::move(out), placed(reader.form(layer, i), at, layer.type.channels));
        at += reader.form(layer, i).type.channels;
    }
    return out;
}

Form lower_slice(NetworkReader& reader, const Layer& layer) {
    std::vector<int64_t> channels(static_cast<size_t>(layer.type.channels));
    std::iota(channels.begin(), channels.end(), layer.options.begin);
    return selected(reader.form(layer, 0), channels);
}

Form lower_reverse(NetworkReader& reader, const Layer& layer) {
    std::vector<int64_t> channels(static_cast<size_t>(layer.type.channels));
    std::iota(channels.rbegin(), channels.rend(), int64_t{0});
    return selected(reader.form(layer, 0), channels);
}

Form lower_repeat(NetworkReader& reader, const Layer& layer) {
    const Level level = reader.form(layer, 0).type.level;
    if (layer.type.width == 1 && level == Level::point) return reader.form(layer, 0);
    return reader.seen_through(layer, {-1, level == Level::cloud ? Access::cloud : Access::point, -1});
}

// === Steps

void check_copy(const ProgramCheck& check, const Step& step) {
    const TensorType& to = check.output(step);
    check.require(!to.is_index, "makes indices");
    int64_t channels = 0;
    for (const Source& source : step.inputs)
        channels += check.number_source(source, ProgramCheck::rows_of(to)).channels;
    check.expect(step, network::rows_of(to, to.width, channels));
}

void run_copy(const Piece& piece) {
    cpu::Rows part = piece.out();
    for (size_t i = 0; i < piece.step.inputs.size(); part.data += piece.channels(i++))
        cpu::copy_rows(piece.input(i), piece.channels(i), part, piece.begin, piece.end);
}

void check_slice(const ProgramCheck& check, const Step& step) {
    const TensorType& x = check.only_numbers(step);
    check.require(0 <= step.begin && step.begin < step.end && step.end <= x.channels, "its slice is out of range");
    check.expect(step, network::rows_of(x, x.width, step.end - step.begin));
}

void run_slice(const Piece& piece) {
    cpu::RowSource x = piece.input(0);
    x.data += piece.step.begin;
    cpu::copy_rows(x, piece.out_channels(), piece.out(), piece.begin, piece.end);
}

void check_reverse(const ProgramCheck& check, const Step& step) {
    check.expect(step, check.only_numbers(step));
}

void run_reverse(const Piece& piece) {
    cpu::reverse(piece.input(0), piece.out_channels(), piece.out(), piece.begin, piece.end);
}

void check_unflatten(const ProgramCheck& check, const Step& step) {
    const TensorType &x = check.only_numbers(step), &to = check.output(step);
    check.require(x.level == Level::cloud && to.points > 0 && to.channels * to.points == x.channels,
                  "needs the numbers of all points of a cloud");
    check.expect(step, {Level::point, 1, to.channels, false, to.set, 0, to.points});
}

void run_unflatten(const Piece& piece) {
    const float* from = piece.input(0).data;
    const int64_t channels = piece.out_channels();
    for (int64_t r = piece.begin; r < piece.end; ++r) std::copy_n(from + r * channels, channels, piece.out().row(r));
}

void check_regroup(const ProgramCheck& check, const Step& step) {
    const TensorType &x = check.only_points(step), &to = check.output(step);
    check.require(x.width * x.channels == to.width * to.channels, "makes more or fewer numbers of a point");
    check.expect(step, network::rows_of(x, to.width, to.channels));
}

/// piece.width: rows of a point in the output.
void run_regroup(const Piece& piece) {
    const cpu::RowSource x = piece.input(0);
    const cpu::Rows out = piece.out();
    const int64_t c = piece.channels(0), channels = piece.out_channels(), rows = piece.width * channels / c;
    for (int64_t r = piece.begin; r < piece.end; ++r) {
        const int64_t point = r / piece.width;
        int64_t at = r % piece.width * channels;
        float* to = out.row(r);
        for (int64_t left = channels; left > 0;) {
            const int64_t count = std::min(left, c - at % c);
            to = std::copy_n(x.data + (point * rows + at / c) * x.stride + at % c, count, to);
            at += count;
            left -= count;
        }
    }
}

constexpr lowering::LayerLowering kChannelLayers[] = {
    {Kind::concat, lower_concat},
    {Kind::slice, lower_slice},
    {Kind::reverse, lower_reverse},
    {Kind::repeat, lower_repeat},
    {Kind::unflatten, lowering::lower_to_step<StepKind::unflatten>},
    {Kind::regroup, lowering::lower_to_step<StepKind::regroup>},
};
constexpr StepType kChannelSteps[] = {
    {.kind = StepKind::copy, .name = "copy", .check = check_copy, .run = run_copy},
    {.kind = StepKind::slice, .name = "slice", .check = check_slice, .run = run_slice},
    {.kind = StepKind::reverse, .name = "reverse", .check = check_reverse, .run = run_reverse},
    {.kind = StepKind::unflatten, .name = "unflatten", .check = check_unflatten, .run = run_unflatten},
    {.kind = StepKind::regroup, .name = "regroup", .check = check_regroup, .run = run_regroup},
};

}  // namespace

KindGroup channel_group() {
    return {kChannelLayers, kChannelSteps};
}

}  // namespace stipple::engine
