#include <algorithm>

#include "stipple/engine/lower/graph.h"

namespace stipple::engine::lowering {
namespace {

// A chain that begins at an input is computed again for another consumer when it has at most this part of the
// consumer's multiply-adds: storing and reading would cost more than that.
constexpr int64_t kRecomputeFraction = 8;
// Where it is stored anyway, only when reading a number would take longer than this many multiply-adds.
constexpr int64_t kRecomputePerChannel = 128;

class Planner {
public:
    explicit Planner(const Graph& graph) : graph_(graph), users_(graph.users()) {}

    Chains plan() {
        const auto n = static_cast<NodeId>(graph_.nodes.size());
        for (NodeId id = 0; id < n; ++id) {
            const std::vector<NodeId>& users = users_of(id);
            if (is_dense(id) &&
                !std::all_of(users.begin(), users.end(), [&](NodeId user) { return can_follow(user, id); }))
                store(id);
        }
        for (NodeId id = 0; id < n; ++id) {
            if (users_of(id).empty() || !is_reduction(id)) continue;
            const NodeId inner = graph_[id].inputs[0].node;
            if (is_dense(inner) && users_of(inner).size() == 1) add_chain(id, inner);
        }
        while (!open_.empty()) {
            const NodeId id = open_.back();
            open_.pop_back();
            add_chain(id, id);
        }
        return std::move(chains_);
    }

private:
    const std::vector<NodeId>& users_of(NodeId id) const { return users_[static_cast<size_t>(id)]; }
    bool is_dense(NodeId id) const { return graph_[id].kind == NodeKind::dense; }

    bool is_reduction(NodeId id) const {
        const Node& node = graph_[id];
        return node.kind == NodeKind::step && (node.step == StepKind::max_points || node.step == StepKind::max_rows);
    }

    /// The dense node whose rows, and nothing else, this one takes; -1 for none.
    NodeId before(NodeId id) const {
        const Node& node = graph_[id];
        if (node.kind != NodeKind::dense || node.parts.size() != 1 || !node.addends.empty()) return -1;
        const NodeId inner = node.parts[0].link.node;
        return is_dense(inner) ? inner : -1;
    }

    /// Whether the user can be computed without the node being stored.
    bool can_follow(NodeId user, NodeId id) const {
        if (user < 0) return false;
        if (is_reduction(user)) return users_of(id).size() == 1;
        return before(user) == id;
    }

    void store(NodeId id) {
        if (std::find(stored_.begin(), stored_.end(), id) != stored_.end()) return;
        stored_.push_back(id);
        open_.push_back(id);
    }

    bool is_stored(NodeId id) const { return std::find(stored_.begin(), stored_.end(), id) != stored_.end(); }

    int64_t cost_of(const std::vector<NodeId>& layers) const {
        int64_t sum = 0;
        for (const NodeId id : layers) sum += cost(graph_[id]);
        return sum;
    }

    /// All layers up to this one from an input of the program, last first; empty where it does not begin there.
    std::vector<NodeId> from_input(NodeId id) const {
        std::vector<NodeId> layers;
        for (NodeId at = id; at >= 0; at = before(at)) layers.push_back(at);
        const Node& first = graph_[layers.back()];
        const bool is_input = first.addends.empty() && first.parts.size() == 1 &&
                              graph_[first.parts[0].link.node].kind == NodeKind::input;
        if (!is_input) layers.clear();
        return layers;
    }

    void add_chain(NodeId end, NodeId last) {
        std::vector<NodeId> layers{last};  // last first
        for (NodeId at = before(last); at >= 0; at = before(at)) {
            if (users_of(at).size() == 1 && !is_stored(at)) {
                layers.push_back(at);
                continue;
            }
            const std::vector<NodeId> again = from_input(at);
            const int64_t again_cost = cost_of(again);
            const bool is_cheap = again_cost * kRecomputeFraction <= cost_of(layers) &&
                                  (!is_stored(at) || again_cost <= kRecomputePerChannel * graph_[at].type.channels);
            if (!again.empty() && is_cheap)
                layers.insert(layers.end(), again.begin(), again.end());
            else
                store(at);
            break;
        }
        std::reverse(layers.begin(), layers.end());
        chains_.of[end] = std::move(layers);
    }

    const Graph& graph_;
    std::vector<std::vector<NodeId>> users_;
    std::vector<NodeId> stored_, open_;
    Chains chains_;
};

}  // namespace

Chains plan_chains(const Graph& graph) {
    return Planner(graph).plan();
}

}  // namespace stipple::engine::lowering
