#pragma once
// The graph between a Network and its Program, and the passes over it. A node is something that has to be computed;
// what is linear between nodes is in their forms. The passes, in order:
//   read_network    every layer becomes a form, and a node where it is not linear; equal nodes are one node
//   share_searches  a knn step for fewer neighbours takes the first ones of another one's
//   compose_dense   a linear layer without activation goes into those that follow, where that costs no more
//   cut_dense       forms become what a Dense is: parts, addends, the cloud's own matrix; moves become steps
//   plan_chains     which nodes are stored, and which layers each chain computes, again where that is cheap
//   emit            the steps

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "stipple/engine/lower/form.h"

namespace stipple::engine::lowering {

enum class NodeKind {
    input,
    dense,      // activation(form)
    transform,  // inputs: x, the matrix: x T
    step,       // as the step of that kind
};

struct Node {
    NodeKind kind = NodeKind::step;
    std::string name;
    TensorType type;
    // dense
    Form form;
    Activation activation;
    // dense, after cut_dense
    std::vector<Term> parts;
    std::vector<Link> addends;
    NodeId matrix = -1;
    // transform and step
    StepKind step = StepKind::chain;
    std::vector<Link> inputs;
    std::vector<double> weight;  // fold_matrix, constant, flow_step
    int64_t begin = 0, end = 0;
    double factor = 1;
    bool inverse = false;
    int32_t set = 0;  // log_det: whose points it counts; of others the type or the inputs say it
};

Node make_node(NodeKind kind, std::string name, TensorType type);

/// What two equal nodes have in common: all but the name.
bool is_same(const Node& a, const Node& b);

class Graph {
public:
    std::string name;
    std::vector<Node> nodes;
    struct Output {
        std::string name;
        NodeId node = -1;
    };
    std::vector<Output> outputs;

    const Node& operator[](NodeId id) const { return nodes[static_cast<size_t>(id)]; }
    Node& operator[](NodeId id) { return nodes[static_cast<size_t>(id)]; }

    /// The node that is the same, or a new one.
    NodeId add(Node node);
    /// The node that is there and the same, or -1.
    NodeId find(const Node& node) const;

    /// A form without terms, the same numbers everywhere, as a node that has them: a row of the cloud.
    Form constant(const std::string& name, const Form& form);
    /// activation(form), computed where there are fewest rows: a form of rows that all rows of a cloud or of a point
    /// share, or that are all gathered alike, is computed once for each and looked at from there.
    Form dense(const std::string& name, Form form, Activation activation);
    /// A link to a node that is this form; a new node unless it is one already.
    Link link_of(const std::string& name, const Form& form);
    /// The same as one with Access::row.
    NodeId row_node_of(const std::string& name, const Form& form);
    Form form_of(NodeId node) const;

    /// For each node those that use it, once for each use; an output is a use by -1. Of nodes that outputs need only.
    std::vector<std::vector<NodeId>> users() const;
    /// Nodes that it needs, before cut_dense or after it.
    std::vector<NodeId> needs(NodeId id) const;

private:
    std::unordered_multimap<uint64_t, NodeId> by_hash_;
};

Graph read_network(const network::Network& network, const network::Weights& weights);
void share_searches(Graph& graph);
void compose_dense(Graph& graph);
void cut_dense(Graph& graph);

/// Layers of the chain that computes each stored dense node or reduction; no entry for others.
struct Chains {
    std::map<NodeId, std::vector<NodeId>> of;
};
Chains plan_chains(const Graph& graph);
Program emit(const Graph& graph, const Chains& chains);

/// Product terms of one row: inputs times outputs.
int64_t cost(const Node& dense);

}  // namespace stipple::engine::lowering
