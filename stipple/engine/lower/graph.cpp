#include "stipple/engine/lower/graph.h"

#include <algorithm>
#include <cstring>

namespace stipple::engine::lowering {
namespace {

class Hash {
public:
    template <class T>
    void add(const T& value) {
        unsigned char bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof(T));
        for (unsigned char byte : bytes) state_ = (state_ ^ byte) * 0x100000001b3u;
    }
    /// A sample of long vectors: equality is checked in full.
    template <class T>
    void add(const std::vector<T>& values) {
        add(values.size());
        const size_t step = std::max<size_t>(1, values.size() / 64);
        for (size_t i = 0; i < values.size(); i += step) add(values[i]);
    }
    void add(const Link& link) {
        add(link.node);
        add(link.access);
        add(link.indices);
    }
    uint64_t value() const { return state_; }

private:
    uint64_t state_ = 0xcbf29ce484222325u;
};

uint64_t hash_of(const Node& node) {
    Hash hash;
    hash.add(node.kind);
    hash.add(node.step);
    hash.add(node.type.channels);
    hash.add(node.type.width);
    hash.add(node.form.bias);
    for (const Term& term : node.form.terms) {
        hash.add(term.link);
        hash.add(term.map.values);
        hash.add(term.map.columns);
    }
    for (const Link& link : node.inputs) hash.add(link);
    return hash.value();
}

/// The access that all terms share and that a dense layer can be computed before, or row.
Link common_link(const Form& form) {
    const bool is_cloud =
        std::all_of(form.terms.begin(), form.terms.end(), [](const Term& t) { return t.link.access == Access::cloud; });
    if (is_cloud && form.type.level == Level::point) return {-1, Access::cloud, -1};
    // What a point's rows share may come from its cloud too; at least one term comes from the point.
    const bool is_point = std::all_of(form.terms.begin(), form.terms.end(), [](const Term& t) {
        return t.link.access == Access::point || t.link.access == Access::cloud;
    });
    if (is_point && form.type.level == Level::point) return {-1, Access::point, -1};
    const Link first = form.terms[0].link;
    const bool is_neighbour =
        first.access == Access::neighbour && std::all_of(form.terms.begin(), form.terms.end(), [&](const Term& t) {
            return t.link.access == Access::neighbour && t.link.indices == first.indices;
        });
    if (is_neighbour) return {-1, Access::neighbour, first.indices};
    return {};
}

}  // namespace

Node make_node(NodeKind kind, std::string name, TensorType type) {
    Node node;
    node.kind = kind;
    node.name = std::move(name);
    node.type = type;
    return node;
}

bool is_same(const Node& a, const Node& b) {
    return a.kind == b.kind && a.type == b.type && a.form == b.form && a.activation == b.activation &&
           a.step == b.step && a.inputs == b.inputs && a.weight == b.weight && a.begin == b.begin && a.end == b.end &&
           a.factor == b.factor && a.inverse == b.inverse && a.set == b.set;
}

NodeId Graph::find(const Node& node) const {
    const auto [begin, end] = by_hash_.equal_range(hash_of(node));
    for (auto it = begin; it != end; ++it)
        if (is_same((*this)[it->second], node)) return it->second;
    return -1;
}

NodeId Graph::add(Node node) {
    if (node.kind != NodeKind::input)
        if (const NodeId same = find(node); same >= 0) return same;
    const auto id = static_cast<NodeId>(nodes.size());
    by_hash_.emplace(hash_of(node), id);
    nodes.push_back(std::move(node));
    return id;
}

Form Graph::form_of(NodeId node) const {
    const TensorType& type = (*this)[node].type;
    return {type, {{{node}, identity(type.channels)}}, std::vector<double>(static_cast<size_t>(type.channels), 0.0)};
}

Form Graph::constant(const std::string& constant_name, const Form& form) {
    Node node = make_node(NodeKind::step, constant_name, network::clouds_of(form.type.channels));
    node.step = StepKind::constant;
    node.weight = form.bias;
    Form out = form_of(add(std::move(node)));
    if (form.type.level == Level::point) out.terms[0].link.access = Access::cloud;
    out.type = form.type;
    return out;
}

Form Graph::dense(const std::string& dense_name, Form form, Activation activation) {
    if (form.terms.empty()) form = constant(dense_name, form);
    if (is_pure(form) && activation.kind == ActivationKind::none &&
        (*this)[form.terms[0].link.node].step == StepKind::constant)
        return form;
    const TensorType type = form.type;
    const Link outer = common_link(form);
    if (outer.access == Access::cloud) form.type = network::clouds_of(form.type.channels);
    if (outer.access != Access::row) {
        form.type.width = 1;
        for (Term& term : form.terms)
            if (outer.access == Access::cloud || term.link.access != Access::cloud) term.link = {term.link.node};
    }
    Node node = make_node(NodeKind::dense, dense_name, form.type);
    node.form = std::move(form);
    node.activation = activation;
    const NodeId id = add(std::move(node));
    Form out = form_of(id);
    out.terms[0].link.access = outer.access;
    out.terms[0].link.indices = outer.indices;
    out.type = type;
    return out;
}

Link Graph::link_of(const std::string& link_name, const Form& form) {
    // A transform is never computed by itself: it becomes the matrix of a dense layer.
    if (is_pure(form) && (*this)[form.terms[0].link.node].kind != NodeKind::transform) return form.terms[0].link;
    return dense(link_name, form, {}).terms[0].link;
}

NodeId Graph::row_node_of(const std::string& row_name, const Form& form) {
    const Link link = link_of(row_name, form);
    if (link.access == Access::row) return link.node;
    // Not hoisted: it is wanted as rows.
    Node node = make_node(NodeKind::dense, row_name, form.type);
    node.form = {form.type,
                 {{link, identity(form.type.channels)}},
                 std::vector<double>(static_cast<size_t>(form.type.channels), 0.0)};
    return add(std::move(node));
}

std::vector<NodeId> Graph::needs(NodeId id) const {
    std::vector<NodeId> out;
    const auto add_link = [&](const Link& link) {
        out.push_back(link.node);
        if (link.indices >= 0) out.push_back(link.indices);
    };
    const Node& node = (*this)[id];
    for (const Term& term : node.form.terms) add_link(term.link);
    for (const Term& term : node.parts) add_link(term.link);
    for (const Link& link : node.addends) add_link(link);
    if (node.matrix >= 0) out.push_back(node.matrix);
    for (const Link& link : node.inputs) add_link(link);
    return out;
}

std::vector<std::vector<NodeId>> Graph::users() const {
    std::vector<std::vector<NodeId>> users(nodes.size());
    std::vector<char> is_seen(nodes.size(), 0);
    std::vector<NodeId> open;
    const auto visit = [&](NodeId id, NodeId user) {
        users[static_cast<size_t>(id)].push_back(user);
        if (is_seen[static_cast<size_t>(id)]) return;
        is_seen[static_cast<size_t>(id)] = 1;
        open.push_back(id);
    };
    for (const Output& output : outputs) visit(output.node, -1);
    while (!open.empty()) {
        const NodeId id = open.back();
        open.pop_back();
        for (const NodeId needed : needs(id)) visit(needed, id);
    }
    return users;
}

void share_searches(Graph& graph) {
    const auto is_search = [](const Node& node) { return node.kind == NodeKind::step && node.step == StepKind::knn; };
    for (Node& node : graph.nodes) {
        if (!is_search(node)) continue;
        NodeId widest = -1;
        for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
            const Node& other = graph[id];
            const int64_t most = widest < 0 ? node.type.width : graph[widest].type.width;
            if (is_search(other) && other.inputs == node.inputs && other.type.width > most) widest = id;
        }
        if (widest < 0) continue;
        node.step = StepKind::first_neighbours;
        node.inputs = {{widest}};
    }
}

int64_t cost(const Node& dense) {
    int64_t in = 0;
    for (const Term& part : dense.parts) in += part.map.cols;
    return in * dense.type.channels;
}

}  // namespace stipple::engine::lowering
