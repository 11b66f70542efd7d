#pragma once
// Places the boxes of a directed graph on a plane, in ranks from top to bottom [Sugiyama et al. 1981]: arrows point
// down, few cross, long ones run straight beside the boxes. All arrows of a box leave it as one line and branch where
// their ends are, so that a box with many readers does not become a brush.

#include <cstdint>
#include <vector>

namespace stipple::network {

struct GraphNode {
    double width = 0, height = 0;
    std::vector<int32_t> inputs;  // boxes before this one
};

/// Where a box is.
struct PlacedNode {
    double x = 0, y = 0;  // its upper left corner
    int32_t rank = 0;
};

/// A piece of line from (x0, y0) down to (x1, y1), vertical at both ends.
struct Curve {
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    bool is_arrow = false;  // ends at a box
};

/// Everything that leaves a box.
struct Line {
    std::vector<Curve> curves;
    bool passes_ranks = false;  // runs beside other boxes
};

struct GraphLayout {
    std::vector<PlacedNode> nodes;
    std::vector<Line> lines;  // of each box
    double width = 0, height = 0;
};

/// Boxes do not overlap, and lie within [0, width] x [0, height]. The same for the same graph, always. Cost: about
/// linear in boxes and the ranks that their lines pass.
GraphLayout lay_out(const std::vector<GraphNode>& nodes);

}  // namespace stipple::network
