#include <algorithm>

#include "stipple/engine/lower/graph.h"

namespace stipple::engine::lowering {
namespace {

int64_t cost(const Map& map) {
    return map.is_selection ? 0 : map.rows * map.cols;
}

/// The form with `inner`, a dense node without activation, replaced by what it is made of. False where a link of the
/// result cannot be said.
bool substitute(const Form& form, NodeId inner, const Form& made_of, Form& out) {
    out = {form.type, {}, form.bias};
    for (const Term& term : form.terms) {
        if (term.link.node != inner) {
            add_term(out, term);
            continue;
        }
        const Form replaced = apply(term.map, made_of);
        for (const Term& part : replaced.terms) {
            Link link;
            if (!compose(term.link, part.link, link)) return false;
            add_term(out, {link, part.map});
        }
        for (size_t i = 0; i < out.bias.size(); ++i) out.bias[i] += replaced.bias[i];
    }
    return !out.terms.empty();
}

/// Multiply-adds of a form as it is, and with `inner` replaced, without computing the maps.
int64_t cost_with(const Form& form, NodeId inner, const Form& made_of) {
    int64_t sum = 0;
    for (const Term& term : form.terms) {
        if (term.link.node != inner) {
            sum += cost(term.map);
            continue;
        }
        for (const Term& part : made_of.terms)
            if (!term.map.is_selection || !part.map.is_selection) sum += term.map.rows * part.map.cols;
    }
    return sum;
}

int64_t cost(const Form& form) {
    int64_t sum = 0;
    for (const Term& term : form.terms) sum += cost(term.map);
    return sum;
}

/// Replaces one input of the node. False when none is worth it.
bool compose_one(Graph& graph, NodeId id) {
    const std::vector<std::vector<NodeId>> users = graph.users();
    for (const Term& term : graph[id].form.terms) {
        const NodeId inner = term.link.node;
        const Node& node = graph[inner];
        if (node.kind != NodeKind::dense || node.activation.kind != ActivationKind::none) continue;
        const std::vector<NodeId>& inner_users = users[static_cast<size_t>(inner)];
        const bool is_only_user =
            std::all_of(inner_users.begin(), inner_users.end(), [&](NodeId user) { return user == id; });
        const Form& form = graph[id].form;
        // A layer that others need is computed anyway; and what only moves its numbers gains nothing without it.
        if (!is_only_user && term.map.is_selection) continue;
        const int64_t before = cost(form) + (is_only_user ? cost(node.form) : 0);
        if (cost_with(form, inner, node.form) > before) continue;
        Form replaced;
        if (!substitute(form, inner, node.form, replaced)) continue;
        if (term.map.is_selection) graph[id].name = node.name;
        graph[id].form = std::move(replaced);
        return true;
    }
    return false;
}

}  // namespace

void compose_dense(Graph& graph) {
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
        if (graph[id].kind == NodeKind::dense)
            while (compose_one(graph, id)) {
            }
}

}  // namespace stipple::engine::lowering
