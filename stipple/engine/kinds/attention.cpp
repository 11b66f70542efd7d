// Attention over the points of a cloud.

#include "stipple/engine/cpu/attend.h"
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
using network::Normalise;

/// A softmax over all pairs is one for each query, times a softmax over the queries of ln of their sums.
Form lower_attend(NetworkReader& reader, const Layer& layer) {
    const network::LayerOptions& options = layer.options;
    const bool is_joint = options.normalise == Normalise::joint;
    lowering::Node node = lowering::make_node(lowering::NodeKind::step, layer.name, layer.type);
    node.step = StepKind::attend;
    for (size_t i = 0; i < 3; ++i) node.inputs.push_back({reader.rows(layer, i)});
    node.factor = options.factor;
    node.inverse = options.unit;
    node.begin = options.skips_self ? 1 : 0;
    node.end = options.normalise == Normalise::none ? 0 : 1;
    if (!is_joint) return reader.graph.form_of(reader.graph.add(std::move(node)));
    node.name += "/rows";
    node.type.channels += 1;
    const lowering::NodeId rows = reader.graph.add(std::move(node));
    return reader.step(layer, StepKind::weigh_points, {{rows}});
}

// === Steps

void check_attend(const ProgramCheck& check, const Step& step) {
    check.need_inputs(step, 3);
    const TensorType &queries = check.points(step, 0), &keys = check.points(step, 1), &values = check.points(step, 2);
    check.require(queries.width == 1 && keys.width == 1 && values.width == 1, "needs one row a point");
    check.require(queries.channels == keys.channels, "its queries and keys differ in channels");
    check.require(keys.set == values.set, "its keys and values differ in rows");
    check.require(keys.channels <= network::kMostAttendChannels && values.channels <= network::kMostAttendChannels,
                  "its channels are out of range");
    check.require((step.begin == 0 || step.begin == 1) && (step.end == 0 || step.end == 1), "its words are no words");
    check.require(step.begin == 0 || queries.set == keys.set, "its queries are none of its keys");
    const bool has_sum = check.output(step).channels == values.channels + 1;
    check.require(!has_sum || step.end == 1, "has sums of exponentials without exponentials");
    check.expect(step, network::rows_of(queries, 1, values.channels + (has_sum ? 1 : 0)));
}

void run_attend(const Piece& piece) {
    cpu::attend({.keys = piece.rows(1),
                 .channels = piece.channels(0),
                 .outputs = piece.channels(2),
                 .factor = piece.step.factor,
                 .is_softmax = piece.step.end == 1,
                 .unit = piece.step.inverse,
                 .skips_self = piece.step.begin == 1,
                 .log_sum = piece.out_channels() > piece.channels(2)},
                piece.input(0), piece.input(1), piece.input(2), piece.out(), piece.begin, piece.end);
}

void check_weigh_points(const ProgramCheck& check, const Step& step) {
    const TensorType& x = check.only_points(step);
    check.require(x.width == 1 && x.channels > 1, "needs rows of points and a logit");
    check.expect(step, network::rows_of(x, 1, x.channels - 1));
}

void run_weigh_points(const Piece& piece) {
    cpu::weigh_points(piece.input(0), piece.rows(0), piece.out_channels(), piece.out());
}

constexpr lowering::LayerLowering kAttentionLayers[] = {{Kind::attend, lower_attend}};
constexpr StepType kAttentionSteps[] = {
    {.kind = StepKind::attend, .name = "attend", .check = check_attend, .run = run_attend},
    {.kind = StepKind::weigh_points,
     .name = "weigh_points",
     .check = check_weigh_points,
     .cut = cpu::Cut::cloud,
     .run = run_weigh_points},
};

}  // namespace

KindGroup attention_group() {
    return {kAttentionLayers, kAttentionSteps};
}

}  // namespace stipple::engine
