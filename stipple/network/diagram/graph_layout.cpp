#include "stipple/network/diagram/graph_layout.h"

#include <algorithm>
#include <cmath>

#include "stipple/network/diagram/graph_ranks.h"

namespace stipple::network {
namespace {

constexpr double kBoxGap = 28, kLineGap = 14;  // beside boxes, beside lines
constexpr double kRankGap = 34;                // below a rank, at least
constexpr double kPortGap = 16;                // of the arrows that end at one box
constexpr int kPasses = 40, kStraightPasses = 12;

// Sideways positions: each rank in turn moves as near to its neighbours as the order and the gaps allow.
class Columns {
public:
    Columns(const RankedGraph& graph, const std::vector<GraphNode>& nodes)
        : graph_(graph), nodes_(nodes), x_(graph.vertices.size(), 0) {
        for (const auto& rank : graph.ranks) {
            double at = 0;
            for (size_t i = 0; i < rank.size(); ++i) {
                if (i > 0) at += distance(rank[i - 1], rank[i]);
                x_[static_cast<size_t>(rank[i])] = at;
            }
        }
        const auto count = graph.ranks.size();
        for (int pass = 0; pass < kPasses; ++pass)
            for (size_t step = 0; step < count; ++step) {
                const size_t r = pass % 2 == 0 ? step : count - 1 - step;
                // To one side first, which is quick; then to both, which is fair.
                const bool is_late = pass >= kPasses / 2;
                settle(graph.ranks[r], is_late || pass % 2 == 0, is_late || pass % 2 == 1);
            }
        straighten();
    }

    double x(int32_t v) const { return x_[static_cast<size_t>(v)]; }
    double width(int32_t v) const {
        const Vertex& vertex = graph_.vertices[static_cast<size_t>(v)];
        return vertex.is_box ? nodes_[static_cast<size_t>(vertex.node)].width : 0;
    }

private:
    bool is_box(int32_t v) const { return graph_.vertices[static_cast<size_t>(v)].is_box; }

    double distance(int32_t left, int32_t right) const {
        const double gap = is_box(left) && is_box(right) ? kBoxGap : kLineGap;
        return (width(left) + width(right)) / 2 + gap;
    }

    // Long lines want to be straight most of all.
    double weight(int32_t a, int32_t b) const { return is_box(a) && is_box(b) ? 1 : is_box(a) || is_box(b) ? 2 : 8; }

    // Least squares to the wanted places under the least distances: blocks that would run into each other merge and
    // move as one (pool adjacent violators).
    void settle(const std::vector<int32_t>& rank, bool uses_above, bool uses_below) {
        struct Block {
            double sum, weight;
            size_t count;
            double mean() const { return sum / weight; }
        };
        std::vector<Block> blocks;
        std::vector<double> offsets;
        double offset = 0;
        for (size_t i = 0; i < rank.size(); ++i) {
            if (i > 0) offset += distance(rank[i - 1], rank[i]);
            offsets.push_back(offset);
            const Vertex& vertex = graph_.vertices[static_cast<size_t>(rank[i])];
            double sum = 0, total = 0;
            const auto add = [&](const std::vector<int32_t>& others) {
                for (int32_t other : others) {
                    sum += weight(rank[i], other) * x(other);
                    total += weight(rank[i], other);
                }
            };
            if (uses_above) add(vertex.above);
            if (uses_below) add(vertex.below);
            if (total == 0) {
                total = 0.01;  // stays, unless pushed
                sum = total * x(rank[i]);
            }
            blocks.push_back({sum - total * offset, total, 1});
            while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() >= blocks.back().mean()) {
                const Block last = blocks.back();
                blocks.pop_back();
                blocks.back().sum += last.sum;
                blocks.back().weight += last.weight;
                blocks.back().count += last.count;
            }
        }
        size_t i = 0;
        for (const Block& block : blocks)
            for (size_t k = 0; k < block.count; ++k, ++i) x_[static_cast<size_t>(rank[i])] = block.mean() + offsets[i];
    }

    struct Interval {
        double low = -1e30, high = 1e30;
    };

    // Where a vertex may be while the others of its rank stay.
    Interval free(int32_t v) const {
        const auto& rank = graph_.ranks[static_cast<size_t>(graph_.vertices[static_cast<size_t>(v)].rank)];
        const size_t i = places_[static_cast<size_t>(v)];
        Interval interval;
        if (i > 0) interval.low = x(rank[i - 1]) + distance(rank[i - 1], v);
        if (i + 1 < rank.size()) interval.high = x(rank[i + 1]) - distance(v, rank[i + 1]);
        return interval;
    }

    // The longest pieces of a line that can be vertical become so, at the mean of what they connect.
    void straighten_line(const std::vector<int32_t>& line) {
        for (size_t begin = 0; begin < line.size();) {
            Interval common = free(line[begin]);
            size_t end = begin + 1;
            for (; end < line.size(); ++end) {
                const Interval next = free(line[end]);
                const Interval both = {std::max(common.low, next.low), std::min(common.high, next.high)};
                if (both.low > both.high) break;
                common = both;
            }
            double sum = 0, count = 0;
            for (size_t i = begin; i < end; ++i) {
                const Vertex& vertex = graph_.vertices[static_cast<size_t>(line[i])];
                for (const auto* others : {&vertex.above, &vertex.below})
                    for (int32_t other : *others)
                        if (is_box(other) || (begin > 0 && other == line[begin - 1])) {
                            sum += x(other);
                            ++count;
                        }
            }
            const double wanted = count > 0 ? sum / count : x(line[begin]);
            for (size_t i = begin; i < end; ++i)
                x_[static_cast<size_t>(line[i])] = std::min(std::max(wanted, common.low), common.high);
            begin = end;
        }
    }

    void centre(int32_t v) {
        const Vertex& vertex = graph_.vertices[static_cast<size_t>(v)];
        double sum = 0, total = 0;
        for (const auto* others : {&vertex.above, &vertex.below})
            for (int32_t other : *others) {
                sum += weight(v, other) * x(other);
                total += weight(v, other);
            }
        if (total == 0) return;
        const Interval interval = free(v);
        x_[static_cast<size_t>(v)] = std::min(std::max(sum / total, interval.low), interval.high);
    }

    void straighten() {
        places_.resize(graph_.vertices.size());
        for (const auto& rank : graph_.ranks)
            for (size_t i = 0; i < rank.size(); ++i) places_[static_cast<size_t>(rank[i])] = i;
        // Vertices of one line follow each other, from top to bottom.
        std::vector<std::vector<int32_t>> lines(nodes_.size());
        for (size_t v = nodes_.size(); v < graph_.vertices.size(); ++v)
            lines[static_cast<size_t>(graph_.vertices[v].node)].push_back(static_cast<int32_t>(v));
        for (int pass = 0; pass < kStraightPasses; ++pass) {
            for (size_t i = 0; i < nodes_.size(); ++i) centre(static_cast<int32_t>(i));
            for (const auto& line : lines) straighten_line(line);
        }
    }

    const RankedGraph& graph_;
    const std::vector<GraphNode>& nodes_;
    std::vector<double> x_;       // centres
    std::vector<size_t> places_;  // of each vertex in its rank
};

// A rank's upper and lower edge.
struct Band {
    double top = 0, bottom = 0;
};

std::vector<Band> bands_of(const RankedGraph& graph, const std::vector<GraphNode>& nodes, const Columns& columns) {
    std::vector<Band> bands;
    double y = 0;
    for (const auto& rank : graph.ranks) {
        double height = 0, aside = 0;
        for (int32_t v : rank) {
            const Vertex& vertex = graph.vertices[static_cast<size_t>(v)];
            if (vertex.is_box) height = std::max(height, nodes[static_cast<size_t>(vertex.node)].height);
            for (int32_t below : vertex.below) aside = std::max(aside, std::fabs(columns.x(v) - columns.x(below)));
        }
        bands.push_back({y, y + height});
        // Lines that go far aside need room to turn.
        y += height + kRankGap + std::min(0.06 * aside, 40.0);
    }
    return bands;
}

}  // namespace

GraphLayout lay_out(const std::vector<GraphNode>& nodes) {
    const RankedGraph graph = rank_graph(nodes);
    const Columns columns(graph, nodes);
    const std::vector<Band> bands = bands_of(graph, nodes, columns);

    GraphLayout layout;
    layout.nodes.resize(nodes.size());
    layout.lines.resize(nodes.size());
    double left = 0, right = 0;
    for (size_t v = 0; v < graph.vertices.size(); ++v) {
        const double x = columns.x(static_cast<int32_t>(v)), half = columns.width(static_cast<int32_t>(v)) / 2;
        left = v == 0 ? x - half : std::min(left, x - half);
        right = v == 0 ? x + half : std::max(right, x + half);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
        const int32_t rank = graph.vertices[i].rank;
        layout.nodes[i] = {columns.x(static_cast<int32_t>(i)) - nodes[i].width / 2 - left,
                           bands[static_cast<size_t>(rank)].top, rank};
    }
    for (size_t v = 0; v < graph.vertices.size(); ++v) {
        const Vertex& vertex = graph.vertices[v];
        const Band& band = bands[static_cast<size_t>(vertex.rank)];
        const double x = columns.x(static_cast<int32_t>(v)) - left;
        if (!vertex.is_box) layout.lines[static_cast<size_t>(vertex.node)].passes_ranks = true;
        // What is beside boxes goes straight down.
        const double top = vertex.is_box ? band.top + nodes[v].height : band.top;
        if (!vertex.below.empty() && top < band.bottom)
            layout.lines[static_cast<size_t>(vertex.node)].curves.push_back({x, top, x, band.bottom, false});
        // Lines that end here, side by side in the order in which they come.
        std::vector<int32_t> above = vertex.above;
        std::sort(above.begin(), above.end(), [&](int32_t a, int32_t b) { return columns.x(a) < columns.x(b); });
        const double room = vertex.is_box ? std::max(nodes[v].width - 2 * kPortGap, 0.0) : 0;
        const double gap = above.size() < 2 ? 0 : std::min(kPortGap, room / static_cast<double>(above.size() - 1));
        for (size_t i = 0; i < above.size(); ++i) {
            const Vertex& from = graph.vertices[static_cast<size_t>(above[i])];
            const double port = x + gap * (static_cast<double>(i) - static_cast<double>(above.size() - 1) / 2);
            layout.lines[static_cast<size_t>(from.node)].curves.push_back({columns.x(above[i]) - left,
                                                                           bands[static_cast<size_t>(from.rank)].bottom,
                                                                           port, band.top, vertex.is_box});
        }
    }
    layout.width = right - left;
    layout.height = bands.empty() ? 0 : bands.back().bottom;
    return layout;
}

}  // namespace stipple::network
