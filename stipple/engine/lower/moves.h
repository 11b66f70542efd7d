#pragma once
// Forms without a product: slices, copies, sums and their like become steps of their own kind.

#include "stipple/engine/lower/graph.h"

namespace stipple::engine::lowering {

/// Turns the dense node into a step when its form only moves or adds numbers. False, and unchanged, when it does not.
/// May add nodes.
bool make_move(Graph& graph, NodeId id);

}  // namespace stipple::engine::lowering
