#include <algorithm>

#include "stipple/engine/lower/graph.h"
#include "stipple/engine/lower/moves.h"

namespace stipple::engine::lowering {
namespace {

/// The terms as a dense layer of their own, with one row where all of them have one.
Node product_node(const Graph& graph, const Node& consumer, std::vector<Term> terms, Access access) {
    TensorType type = consumer.type;
    if (access == Access::cloud) type = network::clouds_of(type.channels);
    if (access == Access::point || access == Access::neighbour) type = network::rows_of(type, 1, type.channels);
    // What a point and its neighbours add are two products of one source.
    const char* const seen = access == Access::neighbour ? ".neighbour" : "";
    Node node = make_node(NodeKind::dense, consumer.name + "/" + graph[terms[0].link.node].name + seen, type);
    for (Term& term : terms) term.link = {term.link.node};
    node.form = {type, std::move(terms), std::vector<double>(static_cast<size_t>(type.channels), 0.0)};
    return node;
}

/// [out, k] times the cloud's matrix.
NodeId fold(Graph& graph, const Node& consumer, const Map& map, NodeId matrix) {
    Node node =
        make_node(NodeKind::step, consumer.name + "/" + graph[matrix].name, network::clouds_of(map.rows * map.cols));
    node.step = StepKind::fold_matrix;
    node.inputs = {{matrix}};
    if (!is_identity(map)) node.weight = dense_values(map);
    return graph.add(std::move(node));
}

class Cutter {
public:
    explicit Cutter(Graph& graph) : graph_(graph) {}

    void run() {
        const std::vector<std::vector<NodeId>> users = graph_.users();
        std::vector<NodeId> dense;
        for (NodeId id = 0; id < static_cast<NodeId>(users.size()); ++id)
            if (!users[static_cast<size_t>(id)].empty() && graph_[id].kind == NodeKind::dense)
                if (!make_move(graph_, id)) dense.push_back(id);
        // All products of fewer rows first: a layer may find the one it needs as a row there too.
        for (const NodeId id : dense) cut_products(id);
        for (const NodeId id : dense) cut_rows(id);
        for (size_t i = 0; i < products_.size(); ++i)  // grows while it runs
            if (!graph_[products_[i]].form.terms.empty()) cut_rows(products_[i]);
    }

private:
    bool is_transform(const Term& term) const { return graph_[term.link.node].kind == NodeKind::transform; }

    NodeId add_product(NodeId consumer, std::vector<Term> terms, Access access) {
        const NodeId id = graph_.add(product_node(graph_, graph_[consumer], std::move(terms), access));
        products_.push_back(id);
        return id;
    }

    void cut_products(NodeId id) {
        std::vector<Term> rows;
        std::vector<std::pair<Link, std::vector<Term>>> groups;  // by access and indices
        for (const Term& term : graph_[id].form.terms) {
            if (term.link.access == Access::row) {
                rows.push_back(term);
                continue;
            }
            const Link key{-1, term.link.access, term.link.indices};
            const auto group =
                std::find_if(groups.begin(), groups.end(), [&](const auto& entry) { return entry.first == key; });
            if (group == groups.end())
                groups.push_back({key, {term}});
            else
                group->second.push_back(term);
        }
        for (auto& [key, terms] : groups) {
            if (terms.size() == 1 && is_identity(terms[0].map) && !is_transform(terms[0])) {
                graph_[id].addends.push_back(terms[0].link);
                continue;
            }
            const NodeId product = add_product(id, std::move(terms), key.access);
            graph_[id].addends.push_back({product, key.access, key.indices});
        }
        graph_[id].form.terms = std::move(rows);
    }

    void cut_rows(NodeId id) {
        std::vector<Term> rows = std::move(graph_[id].form.terms);
        graph_[id].form.terms.clear();
        const bool is_alone = rows.size() == 1;
        for (Term& term : rows) {
            if (is_transform(term)) {
                if (is_alone) {
                    const Node& transform = graph_[term.link.node];
                    const Link x = transform.inputs[0];
                    const NodeId matrix = fold(graph_, graph_[id], term.map, transform.inputs[1].node);
                    graph_[id].matrix = matrix;
                    graph_[id].parts.push_back({x, std::move(term.map)});
                } else {
                    const NodeId product = add_product(id, {term}, Access::row);
                    graph_[id].addends.push_back({product});
                }
                continue;
            }
            if (is_identity(term.map)) {
                graph_[id].addends.push_back(term.link);
                continue;
            }
            const NodeId shared = graph_.find(product_node(graph_, graph_[id], {term}, Access::row));
            if (shared >= 0 && shared != id && is_product(shared))
                graph_[id].addends.push_back({shared});
            else
                graph_[id].parts.push_back(std::move(term));
        }
    }

    bool is_product(NodeId id) const { return std::find(products_.begin(), products_.end(), id) != products_.end(); }

    Graph& graph_;
    std::vector<NodeId> products_;
};

}  // namespace

void cut_dense(Graph& graph) {
    Cutter(graph).run();
}

}  // namespace stipple::engine::lowering
