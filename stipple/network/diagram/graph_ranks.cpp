#include "stipple/network/diagram/graph_ranks.h"

#include <algorithm>
#include <utility>

namespace stipple::network {
namespace {

constexpr int kRankPasses = 12;
constexpr int kOrderPasses = 24;

std::vector<std::vector<int32_t>> readers_of(const std::vector<GraphNode>& nodes) {
    std::vector<std::vector<int32_t>> readers(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i)
        for (int32_t input : nodes[i].inputs) {
            auto& list = readers[static_cast<size_t>(input)];
            if (list.empty() || list.back() != static_cast<int32_t>(i)) list.push_back(static_cast<int32_t>(i));
        }
    return readers;
}

// === Ranks

// As high as possible first. Then each box moves to where the lines are shortest; a line is as long as the way to its
// last reader, so a box that reads a long line may move down along it for nothing.
class Ranker {
public:
    explicit Ranker(const std::vector<GraphNode>& nodes)
        : nodes_(nodes), readers_(readers_of(nodes)), ranks_(nodes.size(), 0) {
        for (size_t i = 0; i < nodes.size(); ++i)
            for (int32_t input : nodes[i].inputs) ranks_[i] = std::max(ranks_[i], rank(input) + 1);
        for (int pass = 0; pass < kRankPasses; ++pass) {
            bool has_moved = false;
            for (size_t i = nodes.size(); i-- > 0;) has_moved |= move(i);
            if (!has_moved) break;
        }
    }

    const std::vector<int32_t>& ranks() const { return ranks_; }

private:
    int32_t rank(int32_t node) const { return ranks_[static_cast<size_t>(node)]; }

    int32_t last_reader(size_t node, size_t except) const {
        int32_t last = ranks_[node];
        for (int32_t reader : readers_[node])
            if (static_cast<size_t>(reader) != except) last = std::max(last, rank(reader));
        return last;
    }

    bool move(size_t node) {
        if (readers_[node].empty()) return false;
        int32_t lowest = rank(readers_[node][0]) - 1, highest = 0;
        for (int32_t reader : readers_[node]) lowest = std::min(lowest, rank(reader) - 1);
        for (int32_t input : nodes_[node].inputs) highest = std::max(highest, rank(input) + 1);
        int32_t best = ranks_[node];
        int64_t best_cost = -1;
        for (int32_t at = lowest; at >= highest; --at) {
            int64_t cost = -at;
            for (int32_t input : nodes_[node].inputs)
                cost += std::max(at, last_reader(static_cast<size_t>(input), node));
            if (best_cost >= 0 && cost + lowest >= best_cost) continue;
            best_cost = cost + lowest;  // not below zero
            best = at;
        }
        return std::exchange(ranks_[node], best) != best;
    }

    const std::vector<GraphNode>& nodes_;
    std::vector<std::vector<int32_t>> readers_;
    std::vector<int32_t> ranks_;
};

void connect(RankedGraph& graph, int32_t above, int32_t below) {
    graph.vertices[static_cast<size_t>(above)].below.push_back(below);
    graph.vertices[static_cast<size_t>(below)].above.push_back(above);
}

// One line of vertices for all readers of a box.
void add_lines(RankedGraph& graph, int32_t node, const std::vector<int32_t>& readers) {
    const auto rank_of = [&](int32_t v) { return graph.vertices[static_cast<size_t>(v)].rank; };
    int32_t last = rank_of(node);
    for (int32_t reader : readers) last = std::max(last, rank_of(reader));
    int32_t at = node;
    for (int32_t rank = rank_of(node) + 1; rank <= last; ++rank) {
        for (int32_t reader : readers)
            if (rank_of(reader) == rank) connect(graph, at, reader);
        if (rank == last) break;
        const auto next = static_cast<int32_t>(graph.vertices.size());
        graph.vertices.push_back({node, false, rank, {}, {}});
        connect(graph, at, next);
        at = next;
    }
}

// === Order

class Orderer {
public:
    explicit Orderer(RankedGraph& graph) : graph_(graph), places_(graph.vertices.size()) {
        depth_first();
        auto best = graph.ranks;
        int64_t fewest = count_crossings(graph);
        for (int pass = 0; pass < kOrderPasses && fewest > 0; ++pass) {
            sweep(pass % 2 == 0, pass % 4 < 2);
            swap_neighbours();
            const int64_t crossings = count_crossings(graph);
            if (crossings >= fewest) continue;
            fewest = crossings;
            best = graph.ranks;
        }
        graph.ranks = best;
    }

private:
    Vertex& vertex(int32_t v) { return graph_.vertices[static_cast<size_t>(v)]; }
    double place(int32_t v) const { return places_[static_cast<size_t>(v)]; }

    void remember(const std::vector<int32_t>& rank) {
        for (size_t i = 0; i < rank.size(); ++i) places_[static_cast<size_t>(rank[i])] = static_cast<double>(i);
    }

    // What belongs together starts together.
    void depth_first() {
        std::vector<char> is_seen(graph_.vertices.size(), 0);
        std::vector<int32_t> stack;
        for (int32_t start = static_cast<int32_t>(graph_.vertices.size()); start-- > 0;)
            if (vertex(start).above.empty()) stack.push_back(start);
        while (!stack.empty()) {
            const int32_t v = stack.back();
            stack.pop_back();
            if (std::exchange(is_seen[static_cast<size_t>(v)], 1)) continue;
            graph_.ranks[static_cast<size_t>(vertex(v).rank)].push_back(v);
            const auto& below = vertex(v).below;
            stack.insert(stack.end(), below.rbegin(), below.rend());
        }
        for (const auto& rank : graph_.ranks) remember(rank);
    }

    // Each vertex to the mean of its neighbours in the rank that stands. What is level keeps its order or turns it, so
    // that the search does not circle.
    void sweep(bool is_down, bool turns_ties) {
        const auto count = static_cast<int32_t>(graph_.ranks.size());
        for (int32_t step = 0; step < count; ++step) {
            auto& rank = graph_.ranks[static_cast<size_t>(is_down ? step : count - 1 - step)];
            std::vector<std::pair<double, int32_t>> wanted;
            for (int32_t v : rank) {
                const auto& neighbours = is_down ? vertex(v).above : vertex(v).below;
                double sum = 0;
                for (int32_t other : neighbours) sum += place(other);
                wanted.push_back({neighbours.empty() ? place(v) : sum / static_cast<double>(neighbours.size()), v});
            }
            if (turns_ties) std::reverse(wanted.begin(), wanted.end());
            std::stable_sort(wanted.begin(), wanted.end(), [](auto& a, auto& b) { return a.first < b.first; });
            for (size_t i = 0; i < rank.size(); ++i) rank[i] = wanted[i].second;
            remember(rank);
        }
    }

    int64_t crossings(int32_t left, int32_t right) {
        int64_t count = 0;
        for (const bool is_above : {true, false})
            for (int32_t a : is_above ? vertex(left).above : vertex(left).below)
                for (int32_t b : is_above ? vertex(right).above : vertex(right).below) count += place(a) > place(b);
        return count;
    }

    void swap_neighbours() {
        for (auto& rank : graph_.ranks)
            for (size_t i = 0; i + 1 < rank.size(); ++i) {
                if (crossings(rank[i], rank[i + 1]) <= crossings(rank[i + 1], rank[i])) continue;
                std::swap(rank[i], rank[i + 1]);
                std::swap(places_[static_cast<size_t>(rank[i])], places_[static_cast<size_t>(rank[i + 1])]);
            }
    }

    RankedGraph& graph_;
    std::vector<double> places_;  // of each vertex in its rank
};

}  // namespace

int64_t count_crossings(const RankedGraph& graph) {
    std::vector<int32_t> places(graph.vertices.size());
    int64_t count = 0;
    for (size_t r = 1; r < graph.ranks.size(); ++r) {
        const auto& upper = graph.ranks[r - 1];
        for (size_t i = 0; i < upper.size(); ++i) places[static_cast<size_t>(upper[i])] = static_cast<int32_t>(i);
        // Ends in the upper rank, in the order of the lower one: each pair that stands the wrong way crosses.
        std::vector<int64_t> ends_before(upper.size() + 1, 0);
        for (int32_t v : graph.ranks[r]) {
            const auto& above = graph.vertices[static_cast<size_t>(v)].above;
            for (int32_t a : above)
                for (size_t i = static_cast<size_t>(places[static_cast<size_t>(a)]) + 1; i < upper.size(); ++i)
                    count += ends_before[i];
            for (int32_t a : above) ++ends_before[static_cast<size_t>(places[static_cast<size_t>(a)])];
        }
    }
    return count;
}

RankedGraph rank_graph(const std::vector<GraphNode>& nodes) {
    RankedGraph graph;
    const Ranker ranker(nodes);
    const auto& ranks = ranker.ranks();
    for (size_t i = 0; i < nodes.size(); ++i)
        graph.vertices.push_back({static_cast<int32_t>(i), true, ranks[i], {}, {}});
    const auto readers = readers_of(nodes);
    for (size_t i = 0; i < nodes.size(); ++i) add_lines(graph, static_cast<int32_t>(i), readers[i]);
    graph.ranks.resize(nodes.empty() ? 0 : static_cast<size_t>(*std::max_element(ranks.begin(), ranks.end())) + 1);
    Orderer{graph};
    return graph;
}

}  // namespace stipple::network
