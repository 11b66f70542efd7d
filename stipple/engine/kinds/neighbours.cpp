// Neighbours. gather and edge features are forms; they become part of the chains that read them.

#include "stipple/engine/cpu/piece.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/lower/reader.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {
namespace {

using cpu::Piece;
using lowering::Form;
using lowering::lower_to_step;
using lowering::NetworkReader;
using network::Kind;
using network::Layer;

// === Layers

Form lower_gather(NetworkReader& reader, const Layer& layer) {
    // Chains read neighbours in their own point set alone.
    if (reader.form(layer, 0).type.set != layer.type.set) return reader.step(layer, StepKind::gather);
    return reader.seen_through(layer, {-1, Access::neighbour, reader.rows(layer, 1)});
}

Form lower_edge(NetworkReader& reader, const Layer& layer) {
    const Form self = reader.seen_through(layer, {-1, Access::point, -1});
    const Form other = reader.seen_through(layer, {-1, Access::neighbour, reader.rows(layer, 1)});
    const int64_t c = self.type.channels;
    Form out = placed(self, 0, 3 * c);
    out = sum(std::move(out), placed(other, c, 3 * c));
    out = sum(std::move(out), placed(other, 2 * c, 3 * c));
    return sum(std::move(out), placed(apply(scaled(lowering::identity(c), -1), self), 2 * c, 3 * c));
}

// === Steps

void check_knn(const ProgramCheck& check, const Step& step) {
    if (step.inputs.size() != 2) check.need_inputs(step, 1);
    const TensorType &queries = check.points(step, 0), &points = check.points(step, step.inputs.size() - 1);
    check.require(queries.width == 1 && points.width == 1, "needs one row a point");
    check.require(queries.channels == points.channels, "its queries and points differ in channels");
    const TensorType& to = check.output(step);
    check.require(to.is_index && to.level == Level::point, "makes no indices");
    check.require(to.set == queries.set && to.of == points.set, "makes indices of other point sets");
}

void check_first_neighbours(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 1);
    const TensorType &from = check.input(step, 0), &to = check.output(step);
    check.require(from.is_index, "needs indices");
    TensorType fewer = from;
    fewer.width = to.width;
    check.require(to.width <= from.width, "makes more neighbours than there are");
    check.expect(step, fewer);
}

void run_first_neighbours(const Piece& piece) {  // indices are copied as they are, whatever numbers they would be
    cpu::copy_rows(piece.input(0), piece.out_channels(), piece.out(), piece.begin, piece.end);
}

/// Channels of each neighbour: so many times those of a point, and some more.
template <int64_t kTimes, int64_t kMore>
void check_neighbours(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 2);
    const TensorType &x = check.points(step, 0), &indices = check.input(step, 1);
    check.require(x.width == 1 && indices.is_index, "needs points and indices of their neighbours");
    check.require(indices.of == x.set && (kTimes == 1 || indices.set == x.set), "its indices name other points");
    check.expect(step, network::rows_of(indices, indices.width, kTimes * x.channels + kMore));
}

void run_gather(const Piece& piece) {
    cpu::copy_rows(piece.neighbours(), piece.out_channels(), piece.out(), piece.begin, piece.end);
}

void run_edge_distance(const Piece& piece) {
    cpu::RowSource self = piece.input(0);
    self.access = Access::point;
    cpu::edge_distance(self, piece.neighbours(), piece.channels(0), piece.out(), piece.begin, piece.end);
}

void check_interpolate(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 2);
    const TensorType &weights = check.points(step, 0), &values = check.points(step, 1);
    check.require(weights.width == values.width && weights.set == values.set, "its weights and values differ in rows");
    check.expect(step, network::rows_of(weights, weights.channels, values.channels));
}

void run_interpolate(const Piece& piece) {
    cpu::interpolate(piece.input(0), piece.input(1), piece.width, piece.channels(0), piece.out_channels(), piece.out(),
                     piece.begin, piece.end);
}

constexpr lowering::LayerLowering kNeighbourLayers[] = {
    {Kind::knn, lower_to_step<StepKind::knn>},
    {Kind::gather, lower_gather},
    {Kind::edge, lower_edge},
    {Kind::edge_distance, lower_to_step<StepKind::edge_distance>},
    {Kind::interpolate, lower_to_step<StepKind::interpolate>},
};
constexpr StepType kNeighbourSteps[] = {
    {.kind = StepKind::knn, .name = "knn", .check = check_knn, .cut = cpu::Cut::own},
    {.kind = StepKind::first_neighbours,
     .name = "first_neighbours",
     .check = check_first_neighbours,
     .run = run_first_neighbours},
    {.kind = StepKind::gather, .name = "gather", .check = check_neighbours<1, 0>, .run = run_gather},
    {.kind = StepKind::edge_distance,
     .name = "edge_distance",
     .check = check_neighbours<3, 1>,
     .run = run_edge_distance},
    {.kind = StepKind::interpolate,
     .name = "interpolate",
     .check = check_interpolate,
     .cut = cpu::Cut::points,
     .run = run_interpolate},
};

}  // namespace

KindGroup neighbour_group() {
    return {kNeighbourLayers, kNeighbourSteps};
}

}  // namespace stipple::engine
