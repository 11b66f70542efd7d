#pragma once
// The combinatorial half of a layout: which rank each box is in, and the order within the ranks.

#include <cstdint>
#include <vector>

#include "stipple/network/diagram/graph_layout.h"

namespace stipple::network {

/// A box, or the place where a long line passes a rank.
struct Vertex {
    int32_t node = -1;  // the box, or the one whose line this is
    bool is_box = false;
    int32_t rank = 0;
    std::vector<int32_t> above, below;  // vertices of the neighbouring ranks
};

struct RankedGraph {
    std::vector<Vertex> vertices;             // boxes first, in their order
    std::vector<std::vector<int32_t>> ranks;  // vertices from left to right
};

/// Ranks such that inputs are above, with short lines; a line that passes ranks gets a vertex in each; orders with few
/// crossings.
RankedGraph rank_graph(const std::vector<GraphNode>& nodes);

/// Crossings of the lines between each two neighbouring ranks.
int64_t count_crossings(const RankedGraph& graph);

}  // namespace stipple::network
